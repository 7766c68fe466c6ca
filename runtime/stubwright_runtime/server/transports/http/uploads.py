"""The bodies of requests over HTTP: those that break off or do not end, and large ones.

Takes requests as ASGI has them; gives whole bodies, or answers what is none: 408 if it takes too long, 413 if it is too
large.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

from ....mcp.errors import INVALID_REQUEST, ProtocolError
from ....observability.logs import Tally, log
from ...protocol.messages import error_response
from .events import Response
from .judging import LARGEST, TOO_LARGE

if TYPE_CHECKING:
    from starlette.types import Receive, Send

_SECONDS: Final = 10.0
_FLOOR: Final = 4096
"""How long a body may take: so many seconds of waiting, and one more for each so many bytes that have come."""

_SLOW: Final = ProtocolError(INVALID_REQUEST, "The body of the request took too long to arrive")
_CLOSE: Final = (b"connection", b"close")


class Uploads:
    """Reads bodies."""

    def __init__(self, seconds: float = _SECONDS, floor: int = _FLOOR) -> None:
        """Say how long a body may take.

        Args:
            seconds: How long the server waits for it.
            floor: Bytes that have to come in each second after that.
        """
        self._seconds = seconds
        self._floor = floor
        self._broken = Tally(log(), "requests that broke off: %d; the last after %d bytes of its body")
        self._late = Tally(log(), "requests whose body took too long: %d; the last had %d bytes by then")

    async def read(self, receive: Receive, send: Send, *, is_there: bool = False) -> bytes | None:
        """Return the body of a request; `None` if there is none, and the request is answered.

        Args:
            receive: Gives the request.
            send: Answers it.
            is_there: Whether all of it has come, so that nothing is waited for.
        """
        message = await receive() if is_there else None
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
                    answer = Response.of(408, error_response(None, _SLOW))
                    await answer._replace(headers=(*answer.headers, _CLOSE)).send(send)
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
