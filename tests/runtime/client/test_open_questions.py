"""A server's open requests: a client reads no more of the server than it can answer."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any

import anyio
import pytest
from anyio.streams.memory import MemoryObjectReceiveStream, MemoryObjectSendStream
from mcp.shared.message import SessionMessage
from mcp_types import ErrorData, JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

from stubwright_runtime.client.transports.bounds import MOST_QUESTIONS
from stubwright_runtime.client.transports.guarded import SafeTransport

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


def _ask(key: str) -> SessionMessage:
    return SessionMessage(JSONRPCRequest(jsonrpc="2.0", id=key, method="elicitation/create", params={}))


def _cancel(key: str) -> SessionMessage:
    params = {"requestId": key}
    return SessionMessage(JSONRPCNotification(jsonrpc="2.0", method="notifications/cancelled", params=params))


def _answer(key: str) -> SessionMessage:
    return SessionMessage(JSONRPCResponse(jsonrpc="2.0", id=key, result={}))


def _refuse(key: str) -> SessionMessage:
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=key, error=ErrorData(code=-32601, message="no")))


class _Ends:
    """Both ends of a connection in memory, and what the client has read."""

    def __init__(self) -> None:
        self.server: MemoryObjectSendStream[SessionMessage | Exception]
        self.reading: MemoryObjectReceiveStream[SessionMessage | Exception]
        self.writing: MemoryObjectSendStream[SessionMessage]
        self.server, self.reading = anyio.create_memory_object_stream[SessionMessage | Exception](1000)
        self.writing, self.sent = anyio.create_memory_object_stream[SessionMessage](1000)
        self.read: list[SessionMessage | Exception] = []

    @asynccontextmanager
    async def transport(self) -> AsyncGenerator[Any, None]:
        with self.server, self.reading, self.writing, self.sent:
            yield self.reading, self.writing

    async def read_all(self, stream: Any) -> None:
        async for item in stream:
            self.read.append(item)


@pytest.mark.parametrize("answer", [_answer, _refuse])
async def test_so_many_questions_are_open(answer: Callable[[str], SessionMessage]) -> None:
    ends = _Ends()
    async with SafeTransport(ends.transport()) as (read, write), anyio.create_task_group() as tasks:
        tasks.start_soon(ends.read_all, read)
        for number in range(MOST_QUESTIONS + 10):
            ends.server.send_nowait(_ask(f"q{number}"))
        await anyio.wait_all_tasks_blocked()
        assert len(ends.read) == MOST_QUESTIONS
        for number in range(3):
            await write.send(answer(f"q{number}"))
        await write.send(answer("never asked"))
        await anyio.wait_all_tasks_blocked()
        assert len(ends.read) == MOST_QUESTIONS + 3
        tasks.cancel_scope.cancel()


async def test_a_cancelled_question_is_no_longer_open() -> None:
    ends = _Ends()
    async with SafeTransport(ends.transport()) as (read, _), anyio.create_task_group() as tasks:
        tasks.start_soon(ends.read_all, read)
        for number in range(3 * MOST_QUESTIONS):
            ends.server.send_nowait(_ask(f"q{number}"))
            ends.server.send_nowait(_cancel(f"q{number}"))
        await anyio.wait_all_tasks_blocked()
        assert len(ends.read) == 6 * MOST_QUESTIONS
        tasks.cancel_scope.cancel()


async def test_one_id_for_many_questions_evades_no_bound() -> None:
    """The SDK cancels only the latest of them."""
    ends = _Ends()
    async with SafeTransport(ends.transport()) as (read, _), anyio.create_task_group() as tasks:
        tasks.start_soon(ends.read_all, read)
        for _ in range(MOST_QUESTIONS):
            ends.server.send_nowait(_ask("q"))
            ends.server.send_nowait(_ask("q"))
            ends.server.send_nowait(_cancel("q"))
        await anyio.wait_all_tasks_blocked()
        messages = [item.message for item in ends.read if isinstance(item, SessionMessage)]
        assert sum(isinstance(message, JSONRPCRequest) for message in messages) == MOST_QUESTIONS
        tasks.cancel_scope.cancel()
