"""Answers of 2026-07-28 over HTTP that are more than one message: streams of events (basic/transports).

Takes a request that is being answered; sends what its handler says as events, and its answer as the last of them. If it
says nothing, the answer is a response of its own, with its status. A client that closes the stream cancels its request.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final, cast

from ....mcp.errors import ProtocolError
from ...protocol.outgoing import Outgoing

if TYPE_CHECKING:
    from starlette.types import Receive, Send

    from ...direct.runs import Conversation, Run

_SILENCE: Final = 15.0
"""Seconds after which a comment is sent on a stream that is silent, so that no proxy closes it."""

_HEADERS: Final = (
    (b"content-type", b"text/event-stream"),
    (b"cache-control", b"no-cache, no-transform"),
    (b"connection", b"keep-alive"),
    (b"x-accel-buffering", b"no"),
)


class EventStream:
    """The stream of one request.

    Attributes:
        is_open: Whether it has begun, so that the answer is an event, too.
    """

    def __init__(self, send: Send) -> None:
        """Take what sends."""
        self._send = send
        self._sending = asyncio.Lock()
        self.is_open = False

    async def send(self, message: bytes) -> None:
        """Send a message as an event."""
        await self._write(b"event: message\r\ndata: %b\r\n\r\n" % message)

    async def keep_alive(self) -> None:
        """Send a comment, which clients ignore."""
        await self._write(b": ping\r\n\r\n")

    async def end(self) -> None:
        """End the stream."""
        await self._send({"type": "http.response.body", "body": b""})

    async def _write(self, data: bytes) -> None:
        async with self._sending:
            if not self.is_open:
                self.is_open = True
                await self._send({"type": "http.response.start", "status": 200, "headers": _HEADERS})
            await self._send({"type": "http.response.body", "body": data, "more_body": True})


def messages_of(run: Run) -> Outgoing:
    """Return the messages to the client of a request, with the first of which its answer becomes a stream."""

    async def send(message: bytes) -> None:
        stream = cast("EventStream | None", await run.reach())
        if stream is not None:
            await stream.send(message)

    return Outgoing(send)


async def stream_run(run: Run, receive: Receive, send: Send) -> None:
    """Answer a request that is being answered, when its handler says something, or when it takes long.

    Raises:
        RuntimeError: Nobody has said how its answer is written.
    """
    if run.write is None:
        raise RuntimeError("it is not known how the answer is written")
    stream = EventStream(send)
    answering = asyncio.create_task(run.join(cast("Conversation", stream)))
    leaving = asyncio.create_task(_until_it_leaves(receive))
    try:
        while not answering.done() and not leaving.done():
            done, _ = await asyncio.wait((answering, leaving), timeout=_SILENCE, return_when=asyncio.FIRST_COMPLETED)
            if not done:
                await stream.keep_alive()
        if not answering.done():
            return
        try:
            status, headers, body = run.write(await answering)
        except ProtocolError as error:
            status, headers, body = run.write(error)
        if stream.is_open:
            await stream.send(body)
            await stream.end()
        else:
            await send({"type": "http.response.start", "status": status, "headers": headers})
            await send({"type": "http.response.body", "body": body})
    finally:
        leaving.cancel()
        answering.cancel()
        await asyncio.wait((answering, leaving))


async def _until_it_leaves(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        continue
