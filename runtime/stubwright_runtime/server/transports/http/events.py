"""Answers over HTTP that are more than one message: streams of events (MCP, basic/transports, "Streamable HTTP").

A stream without a log has one connection and begins with the first message, so that a lone answer is a response with
its own status.
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
"""Seconds after which a comment is sent on a stream that is silent, so that no proxy closes it."""

RETRY: Final = 1000
"""Milliseconds after which a client that lost its stream should come back."""

CONTENT: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"x-accel-buffering", b"no"),  # nginx would collect events before it passes them on
)
"""The headers of a stream of events."""

SESSION: Final = b"mcp-session-id"
"""The header that names the session."""

_JSON: Final = (b"content-type", b"application/json")


def as_event(message: bytes, name: str = "", retry: int | None = None) -> bytes:
    """Return a message as an event (HTML, "Server-sent events").

    Args:
        message: The message; if it is empty, the event only shows where to come back.
        name: The id of the event; empty if there is none.
        retry: Milliseconds after which the client should come back.
    """
    head = b"" if not name else b"id: %b\r\n" % name.encode()
    head += b"" if retry is None else b"retry: %d\r\n" % retry
    return head + (b"event: message\r\n" if message else b"") + b"data: %b\r\n\r\n" % message


async def wait_until_closed(receive: Receive) -> None:
    """Wait until a client closes its connection."""
    while (await receive())["type"] != "http.disconnect":
        continue


class Response(NamedTuple):
    """A response that is not a stream.

    Attributes:
        status: The status.
        headers: The headers.
        body: The body.
    """

    status: int
    headers: Headers
    body: bytes

    @classmethod
    def from_answer(cls, status: int, body: bytes, session: str | None = None) -> Response:
        """Return an answer in JSON, in a session."""
        headers: Headers = (_JSON, (b"content-length", str(len(body)).encode()))
        return cls(status, headers if session is None else (*headers, (SESSION, session.encode())), body)

    def close(self) -> Response:
        """Return the response as the last one of its connection."""
        return self._replace(headers=(*self.headers, (b"connection", b"close")))

    async def send(self, send: Send) -> None:
        """Send it."""
        # The headers are a new list, since middlewares in front may add to it (Starlette, `MutableHeaders`).
        await send({"type": "http.response.start", "status": self.status, "headers": [*self.headers]})
        await send({"type": "http.response.body", "body": self.body})


class EventWriter:
    """One connection that a stream is sent over.

    Attributes:
        is_begun: True if the stream has begun there.
    """

    def __init__(self, send: Send, session: str | None = None) -> None:
        """Take ASGI's `send`, and the session that the response names."""
        self.is_begun = False
        self._send = send
        # A new list, as in `Response`; it is sent once.
        headers = [*CONTENT] if session is None else [*CONTENT, (SESSION, session.encode())]
        self._start: Message = {"type": "http.response.start", "status": 200, "headers": headers}
        self._writing = asyncio.Lock()
        self._is_answered = False
        self._failure: BaseException | None = None
        self._over: asyncio.Future[None] = asyncio.get_running_loop().create_future()

    async def begin(self) -> None:
        """Begin the stream, unless it has begun."""
        if not self.is_begun and not self._over.done():
            self.is_begun = True
            await self._pass(self._start)

    async def write(self, data: bytes) -> None:
        """Send a part of the stream, unless the connection was given up."""
        async with self._writing:
            await self.begin()
            await self._pass({"type": "http.response.body", "body": data, "more_body": True})

    async def respond(self, response: Response) -> None:
        """Send a response in place of a stream that has not begun."""
        async with self._writing:
            self._is_answered = True
            await response.send(self._pass)
        self.close()

    def close(self) -> None:
        """End the stream on this connection, or give the connection up."""
        if not self._over.done():
            self._over.set_result(None)

    async def serve(self, receive: Receive) -> bool:
        """Keep the connection until it is closed; return whether its client closed it.

        What a middleware in front of the server raises about a message is raised here, not in the sender of the
        message, which may be a handler. An OSError is the end of the connection (ASGI, "Disconnected Client").
        """
        leaving = asyncio.create_task(wait_until_closed(receive))
        try:
            while not self._over.done() and not leaving.done():
                done, _ = await asyncio.wait(
                    (leaving, self._over), timeout=_SILENCE, return_when=asyncio.FIRST_COMPLETED
                )
                if not done:
                    await self.write(b": ping\r\n\r\n")
            if not self._over.done() or isinstance(self._failure, OSError):
                return True
            if self._failure is not None:
                raise self._failure
            if not self._is_answered:
                # ASGI wants a start before the end, also of a stream in which nothing was sent.
                if not self.is_begun:
                    await self._send(self._start)
                await self._send({"type": "http.response.body", "body": b""})
            return False
        finally:
            self.close()
            leaving.cancel()
            await asyncio.wait((leaving,))

    async def _pass(self, message: Message) -> None:
        """Send an ASGI message, unless the connection is given up meanwhile."""
        if self._over.done():
            return
        # A client that does not read would hold its sender here; it may have come back on another connection.
        sending = asyncio.ensure_future(self._send(message))
        sending.add_done_callback(self._note)
        try:
            await asyncio.wait((sending, self._over), return_when=asyncio.FIRST_COMPLETED)
        finally:
            if self._over.done() and not sending.done():
                sending.cancel()

    def _note(self, sending: asyncio.Future[None]) -> None:
        """Give the connection up if a message could not be sent."""
        if not sending.cancelled() and (error := sending.exception()) is not None:
            self._failure = error
            self.close()


class EventStream:
    """The messages that belong together: to one request, or to none.

    Attributes:
        is_over: True if it has ended.
        session: The session that it belongs to.
    """

    def __init__(
        self,
        log: EventLog | None = None,
        name: str = "",
        *,
        session: str | None = None,
        has_cursor: bool = False,
        is_over: bool = False,
    ) -> None:
        """Begin with no connection.

        Args:
            log: The log of messages for clients that come back.
            name: The name of the stream there.
            session: The session that it belongs to.
            has_cursor: True if it begins with an event whose id clients can come back with (MCP 2025-11-25).
            is_over: True if it has ended, so that only kept messages can be sent.
        """
        self.is_over = is_over
        self.session = session
        self._log = log
        self._name = name
        self._has_cursor = has_cursor and log is not None
        self._line: EventWriter | None = None
        self._sending = asyncio.Lock()

    @property
    def is_kept(self) -> bool:
        """True if its messages are retained, so that it goes on without its client."""
        return self._log is not None

    async def send(self, message: bytes) -> None:
        """Send a message; without a connection, it is only kept."""
        async with self._sending:
            await self._write(as_event(message, await self._keep(message)))

    async def connect(self, line: EventWriter) -> None:
        """Send further messages over a connection in place of the last one, whose client may be gone unnoticed."""
        self._give_up()
        self._line = line
        await line.begin()
        if self.is_over:
            self._give_up()

    async def resume(self, line: EventWriter, position: Position) -> None:
        """Send the messages after a position, and further ones, over a connection in place of the last one.

        Raises:
            RuntimeError: Its messages are not kept.
        """
        if self._log is None:
            raise RuntimeError("this stream is not stored")
        self._give_up()  # immediately, since a sender may wait for its client
        async with self._sending:
            self._give_up()  # another one may have come back meanwhile

            async def send(message: bytes, name: str) -> None:
                await line.write(as_event(message, name))

            await line.begin()
            await self._log.replay(position, send)
            if self.is_over:
                line.close()
                return
            if event := await self._prime():
                await line.write(event)
            self._line = line

    def disconnect(self, line: EventWriter) -> None:
        """Note that a connection is not there any more."""
        if self._line is line:
            self._line = None

    def end(self) -> None:
        """Close the stream."""
        self.is_over = True
        self._give_up()

    def _give_up(self) -> None:
        line, self._line = self._line, None
        if line is not None:
            line.close()

    async def _prime(self) -> bytes:
        """Return the event with the id to come back with, if the stream has one."""
        return as_event(b"", await self._keep(None), RETRY) if self._has_cursor else b""

    async def _keep(self, message: bytes | None, *, is_answer: bool = False) -> str:
        return "" if self._log is None else await self._log.keep(self._name, message, is_answer=is_answer)

    async def _write(self, data: bytes) -> None:
        if self._line is not None:
            await self._line.write(data)


class AnswerStream(EventStream):
    """The messages that belong to one request, the answer to it last."""

    def __init__(
        self,
        log: EventLog | None = None,
        name: str = "",
        *,
        session: str | None = None,
        has_cursor: bool = False,
        ended: Callable[[], object] = lambda: None,
    ) -> None:
        """Begin with no connection, as `EventStream` does; `ended` is called when it has ended."""
        super().__init__(log, name, session=session, has_cursor=has_cursor)
        self._ended = ended
        self._waiting: list[bytes] | None = []
        """The events to send over the first connection; `None` after it."""
        self._is_primed = False
        self._answer: Response | None = None
        self._is_released = False

    async def connect(self, line: EventWriter) -> None:
        """Send earlier and further messages over the first connection."""
        async with self._sending:
            # Where messages are retained the answer comes as an event in
            # any case. Otherwise an answer alone keeps its own status.
            if self._log is not None:
                await line.begin()
            await self._prime_first()
            waiting, self._waiting = self._waiting or [], None
            for data in waiting:
                await line.write(data)
            self._line = line
            if self._answer is not None:
                await self._send_answer(self._answer)
            elif self.is_over or self._is_released:
                self._give_up()

    def end(self) -> None:
        """Close the stream."""
        super().end()
        self._ended()

    def abandon(self) -> None:
        """Note that there will be no first connection: its messages are only kept."""
        self._waiting = None

    def disconnect(self, line: EventWriter) -> None:
        """Note that a connection is not there any more, even if it never began."""
        self.abandon()
        super().disconnect(line)

    async def send(self, message: bytes) -> None:
        """Send a message, after the event with the id to come back with."""
        async with self._sending:
            await self._prime_first()
        await super().send(message)

    async def finish(self, answer: Response) -> None:
        """Send the answer, and end."""
        async with self._sending:
            await self._prime_first()
            self.is_over = True
            if self._waiting is not None:
                self._answer = answer
            else:
                await self._send_answer(answer)

    def release(self) -> None:
        """Close the connection, so that the client comes back, if it can."""
        if self._has_cursor:
            self._is_released = True
            self._give_up()

    async def _prime_first(self) -> None:
        if not self._is_primed:
            self._is_primed = True
            if event := await self._prime():
                await self._write(event)

    async def _send_answer(self, answer: Response) -> None:
        if self._log is None and self._line is not None and not self._line.is_begun:
            await self._line.respond(answer)
        else:
            await self._write(as_event(answer.body, await self._keep(answer.body, is_answer=True)))
        self._give_up()

    async def _write(self, data: bytes) -> None:
        if self._waiting is not None:
            self._waiting.append(data)
        else:
            await super()._write(data)
