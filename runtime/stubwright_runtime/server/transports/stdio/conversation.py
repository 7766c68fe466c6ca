"""The SDK on standard input and output: what becomes of the messages that need a conversation.

Takes messages that came in; the SDK's streams are stood for here, since its own need threads, drop what is malformed,
and end with the first message that they cannot write.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp.shared.exceptions import MCPError
from mcp.shared.message import SessionMessage
from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    ErrorData,
    JSONRPCError,
    JSONRPCNotification,
    JSONRPCRequest,
    JSONRPCResponse,
    jsonrpc_message_adapter,
)

from ....mcp.errors import UNWRITABLE
from ....observability.logs import log
from ...server import PackageServer

if TYPE_CHECKING:
    from collections.abc import Mapping
    from contextvars import Context
    from types import TracebackType
    from typing import Self

    from mcp_types import JSONRPCMessage

    from ...core.core import Core
    from ...protocol.wants import Wants
    from .due import Due
    from .wire import Output

_GONE: Final = "the client has disconnected"
_REPLAYED: Final = "stubwright/replayed"
"""The id of a request that the client has an answer to already."""


class Conversation:
    """A connection of the SDK."""

    def __init__(self, core: Core, output: Output, due: Due, wants: Wants | None, context: Context) -> None:
        """Have the SDK serve.

        Args:
            core: The server.
            output: Where messages go out.
            due: The requests that are not answered.
            wants: What the client wants to hear, where it has shaken hands.
            context: A context in which no call is under way.
        """
        self._due = due
        self._outgoing = _Outgoing(output, due)
        self._given, taken = anyio.create_memory_object_stream[SessionMessage | Exception](0)
        server = PackageServer(core)
        server.local = wants
        serving = server.run(taken, self._outgoing, server.create_initialization_options())
        self.task = asyncio.create_task(serving, context=context)

    async def replay(self, method: str, params: Mapping[str, Any]) -> None:
        """Give the SDK a request that the client has an answer to."""
        await self.give(JSONRPCRequest(jsonrpc="2.0", id=_REPLAYED, method=method, params=dict(params)))

    async def notify(self, method: str) -> None:
        """Give the SDK a notification that the client sent before."""
        await self.give(JSONRPCNotification(jsonrpc="2.0", method=method))

    async def give_json(self, message: Mapping[str, Any]) -> None:
        """Give the SDK a message as JSON has it."""
        await self.give(jsonrpc_message_adapter.validate_python(message, by_name=False))

    async def give(self, message: JSONRPCMessage) -> None:
        """Give the SDK a message."""
        match message:
            case JSONRPCRequest(id=request) if request != _REPLAYED:
                self._due.add(request)
            case JSONRPCNotification(method="notifications/cancelled", params={"requestId": request}):
                self._due.remove(request)
            case JSONRPCResponse() | JSONRPCError():
                self._outgoing.questions.answered(message)
            case _:
                pass
        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the server listens no more
            await self._given.send(SessionMessage(message))

    async def disconnect(self) -> None:
        """Fail what waits for an answer of the client: none can come any more."""
        for question in self._outgoing.questions.closed():
            await self.give(question)

    async def close(self) -> None:
        """End it. That what it was about to say found no listener is an end like any other."""
        self.task.cancel()
        await asyncio.wait([self.task])
        self._given.close()
        try:
            with suppress(asyncio.CancelledError):
                self.task.result()
        except* (anyio.BrokenResourceError, anyio.ClosedResourceError):
            pass


class _Outgoing:
    """Where the server sends messages, shaped as the SDK uses a stream. What cannot be written fails its sender."""

    def __init__(self, output: Output, due: Due) -> None:
        self.questions = _Questions()
        self._output = output
        self._due = due

    async def send(self, item: SessionMessage, /) -> None:
        """Send a message.

        Raises:
            MCPError: It cannot be written as JSON, or it is a question that nobody answers any more.
        """
        message = item.message
        answered = message.id if isinstance(message, JSONRPCResponse | JSONRPCError) else None
        if answered == _REPLAYED:
            return
        self.questions.asked(message)
        try:
            line = message.model_dump_json(by_alias=True, exclude_unset=True)
        except ValueError:
            log().exception(UNWRITABLE)
            raise MCPError(INTERNAL_ERROR, UNWRITABLE) from None
        await self._output.send(line.encode())
        if answered is not None:
            self._due.remove(answered)

    async def aclose(self) -> None:
        """Do nothing: others write there, too."""

    async def __aenter__(self) -> Self:
        """Begin."""
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> None:
        """Let no more be sent."""


class _Questions:
    """The requests to the client that it has not answered."""

    def __init__(self) -> None:
        self._open: dict[str, int | str] = {}
        self._is_closed = False

    def asked(self, message: JSONRPCMessage) -> None:
        """Note a message that goes out. Raises MCPError where it is a request, and the client has disconnected."""
        if isinstance(message, JSONRPCRequest):
            if self._is_closed:
                raise MCPError(CONNECTION_CLOSED, _GONE)
            self._open[repr(message.id)] = message.id

    def answered(self, message: JSONRPCMessage) -> None:
        """Take note of a message that comes in."""
        if isinstance(message, JSONRPCResponse | JSONRPCError):
            self._open.pop(repr(message.id), None)

    def closed(self) -> list[JSONRPCError]:
        """Return what the server is given in the place of the answers, since the client has disconnected."""
        self._is_closed = True
        error = ErrorData(code=CONNECTION_CLOSED, message=_GONE)
        return [JSONRPCError(jsonrpc="2.0", id=request_id, error=error) for request_id in self._open.values()]
