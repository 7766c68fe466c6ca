"""A client of the official SDK, one message after the other, as standard input would bring them: the oracle of ours."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import INTERNAL_ERROR, jsonrpc_message_adapter

from stubwright_runtime.mcp.errors import UNWRITABLE
from stubwright_runtime.server.app.core import Core
from stubwright_runtime.server.embedding.server import PackageServer
from stubwright_runtime.server.protocol.messages import encode_error, read


class SdkConnection:
    """One client.

    Attributes:
        lines: What the server sent, in order.
        due: The ids of requests that are not answered, as JSON.
    """

    def __init__(self, given: Any) -> None:
        self.lines: list[Any] = []
        self.due: set[str] = set()
        self._given = given

    async def take(self, line: bytes) -> None:
        """Give the SDK what a line says; what is no message is refused, since the SDK's own transport drops it."""
        for entry in read(line):
            if entry.answer is not None:
                self.lines.append(json.loads(encode_error(entry.answer.id, entry.answer.error)))
            if entry.message is not None:
                message = jsonrpc_message_adapter.validate_python(entry.message, by_name=False)
                if "id" in entry.message and "method" in entry.message:
                    self.due.add(json.dumps(entry.message["id"]))
                await self._given.send(SessionMessage(message))

    async def send(self, item: SessionMessage, /) -> None:
        """Take a message of the SDK."""
        try:
            line = item.message.model_dump_json(by_alias=True, exclude_unset=True)
        except ValueError:
            raise MCPError(INTERNAL_ERROR, UNWRITABLE) from None
        message = json.loads(line)
        self.lines.append(message)
        if "method" not in message:
            self.due.discard(json.dumps(message["id"]))

    async def aclose(self) -> None:
        """Do nothing."""

    async def __aenter__(self) -> SdkConnection:
        return self

    async def __aexit__(self, *error: object) -> None:
        """Do nothing."""


@asynccontextmanager
async def sdk_connection(core: Core) -> AsyncIterator[SdkConnection]:
    """A client whose messages the SDK gives to a server's core."""
    given, taken = anyio.create_memory_object_stream[SessionMessage | Exception](0)
    connection: Any = SdkConnection(given)
    server = PackageServer(core)
    serving = asyncio.create_task(server.run(taken, connection, server.create_initialization_options()))
    try:
        yield connection
    finally:
        given.close()  # cancelled, the SDK fails if it has not taken the last message yet
        async with asyncio.timeout(60):
            await serving


def without_words(answer: Any) -> Any:
    """An answer without the words about invalid parameters, in which ours name the member, and the SDK's do not.

    Nor does it have an `id` of null, which only ours leaves out by revision.
    """
    if isinstance(answer, dict) and answer.get("id", 0) is None:
        answer = {key: value for key, value in answer.items() if key != "id"}
    error = answer.get("error") if isinstance(answer, dict) else None
    if not isinstance(error, dict) or error.get("code") != -32602:
        return answer
    is_vague = error["message"].startswith(("Invalid request parameters", "The connection is not initialized"))
    return {**answer, "error": {"code": -32602, "message": "" if is_vague else error["message"]}}
