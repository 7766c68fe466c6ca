"""Reads request bodies, with limits on time and size."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ....mcp.errors import INVALID_REQUEST, ProtocolError
from ....observability.logs import LogThrottle, log
from ...protocol.messages import encode_error
from .events import Response
from .headers import LARGEST
from .rejections import TOO_LARGE

if TYPE_CHECKING:
    from collections.abc import Iterator

    from starlette.types import Message, Receive, Send

_SECONDS: Final = 10.0
_FLOOR: Final = 4096
"""The timeout for a body: `_SECONDS`, plus one second per `_FLOOR` bytes received."""

_SLOW: Final = ProtocolError(INVALID_REQUEST, "The request body took too long to arrive")


def replay_body(body: bytes, receive: Receive) -> Receive:
    """Return an ASGI `receive` that first returns a body that was already read, then calls the original `receive`."""
    read: Iterator[Message] = iter([{"type": "http.request", "body": body, "more_body": False}])

    async def replay() -> Message:
        return next(read, None) or await receive()

    return replay


class Uploads:
    """Reads request bodies, with limits on time and size, and logs the number of incomplete bodies."""

    def __init__(self, seconds: float = _SECONDS, floor: int = _FLOOR) -> None:
        """Create a reader with a timeout that grows with the received bytes.

        Args:
            seconds: The base timeout in seconds.
            floor: The number of received bytes that extends the timeout by one second.
        """
        self._seconds = seconds
        self._floor = floor
        self._broken = LogThrottle(log(), "clients disconnected while sending a body: %d; the last after %d bytes")
        self._late = LogThrottle(log(), "request bodies timed out: %d; the last after %d bytes")

    async def read(self, receive: Receive, send: Send, *, is_complete: bool = False) -> bytes | None:
        """Return a request's body, or `None` if the client disconnects.

        If the body is too large or too slow, send an error response and return `None`.

        Args:
            receive: The request's ASGI `receive`.
            send: The request's ASGI `send`.
            is_complete: True if the body has arrived completely, so that it can be read without a timeout.
        """
        message = await receive() if is_complete else None
        parts: list[bytes] = []
        size, waited = 0, 0.0
        loop = asyncio.get_running_loop()
        while True:
            if message is None:
                began = loop.time()
                try:
                    async with asyncio.timeout(self._seconds + size / self._floor - waited):
                        message = await receive()
                except TimeoutError:
                    self._late.count(size)
                    # Close the connection, so that the rest of the body is not parsed as the next request.
                    await Response.from_answer(408, encode_error(None, _SLOW)).close().send(send)
                    return None
                waited += loop.time() - began
            if message["type"] != "http.request":
                self._broken.count(size)
                return None
            parts.append(message.get("body", b""))
            size += len(parts[-1])
            if size > LARGEST:
                await TOO_LARGE.answer().send(send)
                return None
            if not message.get("more_body"):
                return b"".join(parts)
            message = None
