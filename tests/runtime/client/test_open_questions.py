"""A server's open requests: a client stops reading when it has too many to answer."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from typing import Any

import anyio
import pytest

from stubwright_runtime.client.rpc.connection import RpcConnection
from stubwright_runtime.client.transports.bounds import MOST_QUESTIONS, Bounds

pytestmark = pytest.mark.anyio


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


class _Line:
    """An in-memory transport that delivers the server's messages while the connection has room."""

    over_http = False
    name = "line"

    def __init__(self) -> None:
        self.waiting: list[Mapping[str, Any]] = []
        self.sent: list[Mapping[str, Any]] = []
        self._connection: RpcConnection | None = None

    async def open(self, connection: RpcConnection) -> None:
        self._connection = connection

    async def send(self, message: Mapping[str, Any], headers: Mapping[str, str] | None = None, /) -> None:
        self.sent.append(message)

    def say(self, message: Mapping[str, Any]) -> None:
        self.waiting.append(message)
        self.resume()

    def resume(self) -> None:
        while self._connection is not None and self.waiting and self._connection.has_room:
            self._connection.receive(json.dumps(self.waiting.pop(0)).encode())

    async def close(self, seconds: float, /) -> None:
        """Do nothing."""

    def log_lines(self) -> tuple[str, ...]:
        return ()


class _Client:
    """A client that answers when it is told to."""

    def __init__(self) -> None:
        self.line = _Line()
        self.asked: list[object] = []
        self.is_done = asyncio.Event()
        self.answered: dict[object, asyncio.Event] = {}
        self.connection = RpcConnection(self.line, Bounds(), self._answer, self._hear)

    async def _answer(self, key: object, _method: str, _params: object) -> dict[str, Any]:
        self.asked.append(key)
        if len(self.asked) == MOST_QUESTIONS + 3:
            self.is_done.set()
        await self.answered.setdefault(key, asyncio.Event()).wait()
        return {}

    async def _hear(self, _method: str, _params: object) -> None:
        """Ignore notifications."""


def _ask(key: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": key, "method": "elicitation/create", "params": {}}


def _cancel(key: str) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": key}}


async def test_so_many_questions_are_open() -> None:
    client = _Client()
    await client.connection.open()
    for number in range(MOST_QUESTIONS + 10):
        client.line.say(_ask(f"q{number}"))
    await anyio.wait_all_tasks_blocked()
    assert len(client.asked) == MOST_QUESTIONS
    for number in range(3):
        client.answered[f"q{number}"].set()
    with anyio.fail_after(60):
        await client.is_done.wait()
    assert len(client.line.waiting) == 7
    assert [message["id"] for message in client.line.sent] == ["q0", "q1", "q2"]
    await client.connection.close()


async def test_a_cancelled_question_is_no_longer_open() -> None:
    client = _Client()
    await client.connection.open()
    for number in range(3 * MOST_QUESTIONS):
        client.line.say(_ask(f"q{number}"))
        client.line.say(_cancel(f"q{number}"))
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    await anyio.wait_all_tasks_blocked()
    assert client.line.waiting == []
    assert client.line.sent == []
    await client.connection.close()


async def test_one_id_for_many_questions_evades_no_bound() -> None:
    """A cancellation cancels only the latest of them."""
    client = _Client()
    await client.connection.open()
    for _ in range(2 * MOST_QUESTIONS):
        client.line.say(_ask("q"))
    client.line.say(_cancel("q"))
    await anyio.wait_all_tasks_blocked()
    assert len(client.asked) == MOST_QUESTIONS
    assert len(client.line.waiting) == MOST_QUESTIONS + 1
    await client.connection.close()


async def test_a_response_with_an_odd_method_is_a_response() -> None:
    client = _Client()
    await client.connection.open()
    asking = asyncio.create_task(client.connection.request("ping"))
    await asyncio.sleep(0)
    client.line.say({"jsonrpc": "2.0", "id": 1, "result": {}, "method": 5})
    assert await asking == {}
    await client.connection.close()
