"""Event streams (MCP, basic/transports, "Streamable HTTP").

The HTTP response starts with the first message if there is no event log, so that a single JSON-RPC response can have
its own HTTP status.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from starlette.types import Message, Receive, Send

    from .resumption.log import EventLog, Position

    Headers: TypeAlias = Sequence[tuple[bytes, bytes]]

_SILENCE: Final = 15.0
"""Seconds of idle time after which a stream sends a comment, so that proxies do not close the connection."""

RETRY: Final = 1000
"""Milliseconds after which a disconnected client should reconnect."""

EVENT_HEADERS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),  # otherwise nginx buffers events
)
"""The response headers of an event stream."""

SESSION: Final = b"mcp-session-id"
"""The name of the session ID header."""

_JSON: Final = (b"content-type", b"application/json")


def encode_event(message: bytes, name: str = "", retry: int | None = None) -> bytes:
    """Return a message as an event (HTML, "Server-sent events").

    Args:
        message: The encoded message; empty for an event that has only an ID.
        name: The event ID, or an empty string.
        retry: Milliseconds after which the client should reconnect.
    """
    head = b"" if not name else b"id: %b\r\n" % name.encode()
    head += b"" if retry is None else b"retry: %d\r\n" % retry
    return head + (b"event: message\r\n" if message else b"") + b"data: %b\r\n\r\n" % message


async def wait_until_closed(receive: Receive) -> None:
    """Wait until the client disconnects."""
    while (await receive())["type"] != "http.disconnect":
        continue


class Response(NamedTuple):
    """A response that is not a stream.

    Attributes:
        status: The HTTP status code.
        headers: The response headers, as in ASGI.
        body: The complete body.
    """

    status: int
    headers: Headers
    body: bytes

    @classmethod
    def from_answer(cls, status: int, body: bytes, session: str | None = None) -> Response:
        """Return a JSON response, optionally with a session ID."""
        headers: Headers = (_JSON, (b"content-length", str(len(body)).encode()))
        return cls(status, headers if session is None else (*headers, (SESSION, session.encode())), body)

    def close(self) -> Response:
        """Return a copy of the response with a `Connection: close` header."""
        return self._replace(headers=(*self.headers, (b"connection", b"close")))

    async def send(self, send: Send) -> None:
        """Send the response."""
        # A new list, because middleware can append to the list in the message (Starlette, `MutableHeaders`).
        await send({"type": "http.response.start", "status": self.status, "headers": [*self.headers]})
        await send({"type": "http.response.body", "body": self.body})


class EventWriter:
    """Writes an event stream to one connection.

    Attributes:
        has_started: True if the response has started.
    """

    def __init__(self, send: Send, session: str | None = None) -> None:
        """Create a writer for a connection.

        Args:
            send: The request's ASGI `send`.
            session: The session ID for the response headers.
        """
        self.has_started = False
        self._send = send
        # A new list, as in `Response`.
        headers = [*EVENT_HEADERS] if session is None else [*EVENT_HEADERS, (SESSION, session.encode())]
        self._start: Message = {"type": "http.response.start", "status": 200, "headers": headers}
        self._writing = asyncio.Lock()
        self._is_answered = False
        self._failure: BaseException | None = None
        self._closed: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def begin(self) -> None:
        """Start the response unless it has started."""
        if not self.has_started and not self._closed.done():
            self.has_started = True
            await self._pass(self._start)

    async def write(self, data: bytes) -> None:
        """Send bytes of the stream unless the writer is closed."""
        async with self._writing:
            await self.begin()
            await self._pass({"type": "http.response.body", "body": data, "more_body": True})

    async def respond(self, response: Response) -> None:
        """Send a complete response instead of a stream."""
        async with self._writing:
            self._is_answered = True
            await response.send(self._pass)
        self.close()

    def close(self) -> None:
        """End the stream on this connection."""
        if not self._closed.done():
            self._closed.set_result(None)

    async def serve(self, receive: Receive) -> bool:
        """Wait until the writer or the client closes the connection; return whether the client did.

        Raises exceptions from outer middleware here, because the sender of a message may be a handler. An
        OSError means that the client disconnected (ASGI, "Disconnected Client").
        """
        leaving = asyncio.create_task(wait_until_closed(receive))
        try:
            while not self._closed.done() and not leaving.done():
                done, _ = await asyncio.wait(
                    (leaving, self._closed), timeout=_SILENCE, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    await self.write(b": ping\r\n\r\n")
            if not self._closed.done() or isinstance(self._failure, OSError):
                return True
            if self._failure is not None:
                raise self._failure
            if not self._is_answered:
                # ASGI requires a response start, even for an empty stream.
                if not self.has_started:
                    await self._send(self._start)
                await self._send({"type": "http.response.body", "body": b""})
            return False
        finally:
            self.close()
            leaving.cancel()
            await asyncio.wait((leaving,))

    async def _pass(self, message: Message) -> None:
        if self._closed.done():
            return
        # A client that does not read blocks the sender, so a client that has reconnected must be able to close the
        # writer.
        sending = asyncio.ensure_future(self._send(message))
        sending.add_done_callback(self._on_sent)
        try:
            await asyncio.wait((sending, self._closed), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if self._closed.done() and not sending.done():
                sending.cancel()

    def _on_sent(self, sending: asyncio.Future[None]) -> None:
        if not sending.cancelled() and (error := sending.exception()) is not None:
            self._failure = error
            self.close()


class EventStream:
    """An event stream, either for one request or for messages that belong to no request.

    Attributes:
        has_ended: True after the stream has ended.
        session: The session ID.
    """

    def __init__(
        self,
        log: EventLog | None = None,
        name: str = "",
        *,
        session: str | None = None,
        has_cursor: bool = False,
        has_ended: bool = False,
    ) -> None:
        """Create a stream that has no connection yet.

        Args:
            log: The event log, if the stream can be resumed.
            name: The stream name in the log.
            session: The session ID.
            has_cursor: True to start with an empty event whose ID allows resumption (MCP 2025-11-25).
            has_ended: True if the stream only replays logged messages.
        """
        self.has_ended = has_ended
        self.session = session
        self._log = log
        self._name = name
        self._has_cursor = has_cursor and log is not None
        self._writer: EventWriter | None = None
        self._sending = asyncio.Lock()

    @property
    def is_logged(self) -> bool:
        """True if messages are logged, so that the stream can continue without its client."""
        return self._log is not None

    async def send(self, message: bytes) -> None:
        """Log a message and send it if a connection is open."""
        async with self._sending:
            await self._write(encode_event(message, await self._append(message)))

    async def connect(self, writer: EventWriter) -> None:
        """Send the stream over a new connection.

        The previous connection is closed, because its client may have disconnected without notice.
        """
        self._close_writer()
        self._writer = writer
        await writer.begin()
        if self.has_ended:
            self._close_writer()

    async def resume(self, writer: EventWriter, position: Position) -> None:
        """Send the stream over a new connection, starting with the messages after a position.

        Raises:
            RuntimeError: The stream has no log.
        """
        if self._log is None:
            raise RuntimeError("this stream has no log")
        self._close_writer()  # before the lock, in case a sender has acquired it and waits for its client
        async with self._sending:
            self._close_writer()  # another client may have reconnected in the meantime

            async def send(message: bytes, name: str) -> None:
                await writer.write(encode_event(message, name))

            await writer.begin()
            await self._log.replay(position, send)
            if self.has_ended:
                writer.close()
                return
            if event := await self._prime():
                await writer.write(event)
            self._writer = writer

    def disconnect(self, writer: EventWriter) -> None:
        """Detach a closed connection, unless another one has replaced it."""
        if self._writer is writer:
            self._writer = None

    def end(self) -> None:
        """End the stream and close its connection."""
        self.has_ended = True
        self._close_writer()

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()

    async def _prime(self) -> bytes:
        return encode_event(b"", await self._append(None), RETRY) if self._has_cursor else b""

    async def _append(self, message: bytes | None, *, is_answer: bool = False) -> str:
        return "" if self._log is None else await self._log.append(self._name, message, is_answer=is_answer)

    async def _write(self, data: bytes) -> None:
        if self._writer is not None:
            await self._writer.write(data)


class AnswerStream(EventStream):
    """One request's stream, which ends with the response."""

    def __init__(
        self,
        log: EventLog | None = None,
        name: str = "",
        *,
        session: str | None = None,
        has_cursor: bool = False,
        ended: Callable[[], object] = lambda: None,
    ) -> None:
        """Create a stream like `EventStream`; `ended` is called when the stream ends."""
        super().__init__(log, name, session=session, has_cursor=has_cursor)
        self._ended = ended
        self._waiting: list[bytes] | None = []
        """The events to send on the first connection; `None` after it connects."""
        self._is_primed = False
        self._answer: Response | None = None
        self._is_released = False

    async def connect(self, writer: EventWriter) -> None:
        """Attach the first connection and send the queued messages."""
        async with self._sending:
            # Responses are always events if there is a log; otherwise, a single response has its own HTTP status.
            if self._log is not None:
                await writer.begin()
            await self._prime_first()
            waiting, self._waiting = self._waiting or [], None
            for data in waiting:
                await writer.write(data)
            self._writer = writer
            if self._answer is not None:
                await self._send_answer(self._answer)
            elif self.has_ended or self._is_released:
                self._close_writer()

    def end(self) -> None:
        """Close the stream."""
        super().end()
        self._ended()

    def abandon(self) -> None:
        """Stop waiting for the first connection; from now on, messages are only logged."""
        self._waiting = None

    def disconnect(self, writer: EventWriter) -> None:
        """Detach a closed connection, which may have closed before it was attached."""
        self.abandon()
        super().disconnect(writer)

    async def send(self, message: bytes) -> None:
        """Send a message. The first one follows the empty event from which clients can resume."""
        async with self._sending:
            await self._prime_first()
        await super().send(message)

    async def finish(self, answer: Response) -> None:
        """Send the response and end the stream."""
        async with self._sending:
            await self._prime_first()
            self.has_ended = True
            if self._waiting is not None:
                self._answer = answer
            else:
                await self._send_answer(answer)

    def release(self) -> None:
        """Close the connection if the client can reconnect."""
        if self._has_cursor:
            self._is_released = True
            self._close_writer()

    async def _prime_first(self) -> None:
        if not self._is_primed:
            self._is_primed = True
            if event := await self._prime():
                await self._write(event)

    async def _send_answer(self, answer: Response) -> None:
        if self._log is None and self._writer is not None and not self._writer.has_started:
            await self._writer.respond(answer)
        else:
            await self._write(encode_event(answer.body, await self._append(answer.body, is_answer=True)))
        self._close_writer()

    async def _write(self, data: bytes) -> None:
        if self._waiting is not None:
            self._waiting.append(data)
        else:
            await super()._write(data)
