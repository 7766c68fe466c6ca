"""Messages from a server to one client next to its answers: notifications, and questions with the answers to them.

From 2026-07-28 on servers send no requests of their own (MCP 2026-07-28, basic/patterns, "Multi Round-Trip Requests").
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
"""Seconds that a question waits for `notifications/initialized`."""


class Notifier(Protocol):
    """A sender of notifications to one client."""

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification with its parameters, if it has any."""


class UnreachableError(ProtocolError):
    """A client that cannot be asked."""


class DisconnectedError(UnreachableError):
    """The client has disconnected, and gets no more messages."""

    def __init__(self) -> None:
        """Make the error that a question to it fails with."""
        super().__init__(CONNECTION_CLOSED, "the client has disconnected")


class Questions:
    """The requests to one client that it has not answered."""

    def __init__(self, first: int = 1) -> None:
        """Take the id of the first question."""
        self._next = first
        self._open: dict[int, asyncio.Future[Mapping[str, Any]]] = {}
        self._is_closed = False
        self._may_ask = asyncio.Event()

    @property
    def is_closed(self) -> bool:
        """True if no answer can come any more."""
        return self._is_closed

    def begin(self) -> None:
        """Let questions be asked: the client is ready."""
        self._may_ask.set()

    async def wait_until_ready(self) -> None:
        """Wait until the client is ready for questions (MCP 2025-11-25, basic/lifecycle, "Initialization").

        After a timeout the client is asked without it: some clients never send the notification.

        Raises:
            DisconnectedError: It has disconnected.
        """
        if not self._may_ask.is_set():
            try:
                async with asyncio.timeout(READINESS):
                    await self._may_ask.wait()
            except TimeoutError:
                log().warning("a client is asked before it has sent notifications/initialized")
                self._may_ask.set()
        if self._is_closed:
            raise DisconnectedError

    @contextmanager
    def open_question(self) -> Generator[tuple[int, asyncio.Future[Mapping[str, Any]]], None, None]:
        """Yield the id of one more question, and the future of its answer. Raises DisconnectedError."""
        if self._is_closed:
            raise DisconnectedError
        name, self._next = self._next, self._next + 1
        answer = self._open[name] = asyncio.get_running_loop().create_future()
        try:
            yield name, answer
        finally:
            del self._open[name]

    def resolve(self, message: Mapping[str, Any]) -> bool:
        """Take an answer of the client, and return whether it is one to a question that was asked here."""
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
        """Fail the questions that wait for an answer, or for a client to be ready, since none can come any more."""
        self._is_closed = True
        self._may_ask.set()
        for answer in self._open.values():
            if not answer.done():
                answer.set_exception(DisconnectedError())


class MessageSender:
    """The messages to one client, on its connection or on the stream of one request.

    Attributes:
        questions: The requests to it that it has not answered.
    """

    def __init__(self, send: Callable[[bytes], Awaitable[None]], questions: Questions | None = None) -> None:
        """Take the function that sends a message, and the questions of the connection; by default new ones."""
        self._send = send
        self.questions = questions or Questions()

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification with its parameters, if it has any."""
        fields = {} if params is None else {"params": params}
        await self._send(to_json({"jsonrpc": "2.0", "method": method, **fields}))

    async def ask(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Send a request with its parameters, if it has any, and return the client's answer.

        The question waits until the client is ready. If the caller is cancelled, or the client takes too long, it is
        notified that its answer is no longer needed (MCP 2025-11-25, basic/utilities/cancellation; basic/lifecycle,
        "Timeouts").

        Raises:
            ProtocolError: The client answers with an error, or takes too long.
            DisconnectedError: It has disconnected.
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
                    await self._withdraw(name, "no answer in time")
                raise ProtocolError(REQUEST_TIMEOUT, "the client did not answer in time") from None
            finally:
                del answer  # it holds the client's error, whose traceback holds this frame

    async def _withdraw(self, question: int, reason: str) -> None:
        """Tell the client that its answer to a question is not wanted any more, unless it has disconnected."""
        if not self.questions.is_closed:
            await self.notify("notifications/cancelled", {"requestId": question, "reason": reason})

    async def send_elicit_complete(self, elicitation_id: str, _related_request_id: str | int | None) -> None:
        """Tell the client that all is done at a URL that it was asked to open. Raises DisconnectedError."""
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
