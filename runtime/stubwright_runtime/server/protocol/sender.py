"""Sends notifications and requests from a server to one client.

In MCP 2026-07-28 and later, servers send no requests (MCP 2026-07-28, basic/patterns, "Multi Round-Trip Requests").
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Final, Protocol

from ...mcp.errors import CONNECTION_CLOSED, REQUEST_TIMEOUT, ProtocolError
from ...observability.logs import log
from .messages import to_json

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Generator, Mapping

    from ...mcp.vocabulary import LogLevel


PATIENCE: Final = 3600.0
"""The timeout of a question, in seconds (MCP 2025-11-25, basic/lifecycle, "Timeouts")."""


READINESS: Final = 5.0
"""Seconds that a request to the client waits for `notifications/initialized`."""


class Notifier(Protocol):
    """Sends notifications to one client."""

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification with optional parameters."""


class UnreachableError(ProtocolError):
    """The client is unable to receive requests."""


class DisconnectedError(UnreachableError):
    """The client has disconnected, so it cannot receive or answer requests."""

    def __init__(self) -> None:
        super().__init__(CONNECTION_CLOSED, "the client has disconnected")


class Questions:
    """Tracks the requests that one client has not answered."""

    def __init__(self, first: int = 1) -> None:
        """Create a tracker; `first` is the ID of the first request."""
        self._next = first
        self._open: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self.is_closed = False
        self._may_ask = asyncio.Event()

    def begin(self) -> None:
        """Allow requests to the client, which is ready now."""
        self._may_ask.set()

    async def wait_until_ready(self) -> None:
        """Wait until the client is ready for requests (MCP 2025-11-25, basic/lifecycle, "Initialization").

        The wait times out, because some clients never send the notification.

        Raises:
            DisconnectedError: The client has disconnected.
        """
        if not self._may_ask.is_set():
            try:
                async with asyncio.timeout(READINESS):
                    await self._may_ask.wait()
            except TimeoutError:
                log().warning("sending a request to a client that has not sent notifications/initialized")
                self._may_ask.set()
        if self.is_closed:
            raise DisconnectedError

    @contextmanager
    def open_question(self) -> Generator[tuple[int, asyncio.Future[Mapping[str, Any]]], None, None]:
        """Yield a new request's ID and a future for its result. Raises DisconnectedError."""
        if self.is_closed:
            raise DisconnectedError
        name, self._next = self._next, self._next + 1
        answer = self._open[name] = asyncio.get_running_loop().create_future()
        try:
            yield name, answer
        finally:
            del self._open[name]

    def resolve(self, message: Mapping[str, Any]) -> bool:
        """Pass a response to the request that waits for it, and return whether one was waiting."""
        answer = self._open.get(message["id"]) if isinstance(message["id"], int) else None
        if answer is None:
            return False
        if not answer.done():
            if "error" in message:
                error = message["error"]
                answer.set_exception(ProtocolError(error["code"], error["message"], error.get("data")))
            else:
                answer.set_result(message["result"])
        return True

    def close(self) -> None:
        """Mark the client as disconnected, and fail all requests that wait for it."""
        self.is_closed = True
        self._may_ask.set()
        for answer in self._open.values():
            if not answer.done():
                answer.set_exception(DisconnectedError())


class MessageSender:
    """Sends messages to one client, on its connection or on the stream of one request.

    Attributes:
        questions: The requests that the client has not answered.
    """

    def __init__(self, send: Callable[[bytes], Awaitable[None]], questions: Questions | None = None) -> None:
        """Create a sender.

        Args:
            send: Sends one encoded message.
            questions: The connection's unanswered requests; by default a new tracker.
        """
        self._send = send
        self.questions = questions or Questions()

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification with optional parameters."""
        fields = {} if params is None else {"params": params}
        await self._send(to_json({"jsonrpc": "2.0", "method": method, **fields}))

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Send a request when the client is ready, and return the client's result.

        After a cancellation or timeout, the client is notified (MCP 2025-11-25, basic/utilities/cancellation;
        basic/lifecycle, "Timeouts").

        Raises:
            ProtocolError: The client responded with an error, or did not respond in time.
            DisconnectedError: The client has disconnected.
        """
        with self.questions.open_question() as (name, answer):
            fields = {} if params is None else {"params": params}
            is_asked = False
            try:
                async with asyncio.timeout(PATIENCE):
                    await self.questions.wait_until_ready()
                    is_asked = True
                    await self._send(to_json({"jsonrpc": "2.0", "id": name, "method": method, **fields}))
                    return await answer
            except asyncio.CancelledError:
                if is_asked:
                    await self._withdraw(name, "caller cancelled")
                raise
            except TimeoutError:
                if is_asked:
                    await self._withdraw(name, "the request timed out")
                raise ProtocolError(REQUEST_TIMEOUT, "the client did not respond in time") from None
            finally:
                del answer  # the future refers to the client's error, whose traceback refers to this frame: a cycle

    async def _withdraw(self, question: int, reason: str) -> None:
        if not self.questions.is_closed:
            await self.notify("notifications/cancelled", {"requestId": question, "reason": reason})

    async def send_elicit_complete(self, elicitation_id: str, _related_request_id: str | int | None) -> None:
        """Notify the client that a URL elicitation is complete. Raises DisconnectedError."""
        if self.questions.is_closed:
            raise DisconnectedError
        await self.notify("notifications/elicitation/complete", {"elicitationId": elicitation_id})


def make_progress(token: str | int, done: float, total: float | None, message: str | None) -> dict[str, Any]:
    """Return the parameters of `notifications/progress` (MCP 2025-11-25, basic/utilities/progress)."""
    known = {"total": total, "message": message}
    return {"progressToken": token, "progress": done, **{key: each for key, each in known.items() if each is not None}}


def make_log_message(level: LogLevel, data: Any, logger: str | None) -> dict[str, Any]:
    """Return the parameters of `notifications/message` (MCP 2025-11-25, server/utilities/logging)."""
    return {"level": level, "data": data, **({} if logger is None else {"logger": logger})}
