"""Requests over HTTP, seen before the SDK sees them: those that break off or do not end, and large ones.

Takes and gives ASGI; changes nothing of requests and responses but that a body which takes too long is answered 408.
What is large would stay in memory otherwise.
"""

from __future__ import annotations

import math
from contextlib import suppress
from typing import TYPE_CHECKING, Final

import anyio
from starlette.datastructures import Headers
from starlette.responses import Response

from ....observability.logs import Tally, log

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send


_LARGE: Final = 4096
"""Bytes. Parsed, a message can take twenty times as much, so that this is as much as an idle session takes anyway."""

_PING: Final = b'{"jsonrpc":"2.0","id":"stubwright/ping","method":"ping"}'
SECONDS: Final = 10.0
_FLOOR: Final = 4096
"""How long a body may take: so many seconds of waiting, and one more for each so many bytes that have come."""

_SLOW: Final = (
    b'{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"The body of the request took too long to arrive"}}'
)
_SESSION: Final = "mcp-session-id"
_PATIENCE: Final = 5.0  # seconds


class _BrokenOffError(Exception):
    """The client was gone before its request was whole, or took too long."""


class SlowUploads:
    """Refuses requests whose body takes too long."""

    def __init__(self) -> None:
        """None yet."""
        self._count = Tally(log(), "requests whose body took too long: %d; the last had %d bytes by then")

    async def refuse(self, scope: Scope, receive: Receive, send: Send, size: int = 0) -> None:
        """Answer one, of which so many bytes have come."""
        self._count.count(size)
        await Response(_SLOW, 408, {"connection": "close"}, "application/json")(scope, receive, send)


class Uploads:
    """Passes requests on."""

    def __init__(self, app: ASGIApp, seconds: float = SECONDS, floor: int = _FLOOR) -> None:
        """Take the application that answers them.

        Args:
            app: The application.
            seconds: How long the server waits for a body.
            floor: Bytes that have to come in each second after that.
        """
        self._app = app
        self._seconds = seconds
        self._floor = floor
        self._broken = Tally(log(), "requests that broke off: %d; the last after %d bytes of its body")
        self._slow = SlowUploads()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; one that breaks off is a line in the log."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        session = Headers(scope=scope).get(_SESSION)
        size, answered, waited = 0, 0, 0.0
        is_whole = is_started = is_slow = is_broken = False

        async def received() -> Message:
            nonlocal size, is_whole, is_slow, is_broken, waited
            began = anyio.current_time()
            left = math.inf if is_whole else self._seconds + size / self._floor - waited
            message: Message | None = None
            with anyio.CancelScope(deadline=began + left):
                message = await receive()
            waited += anyio.current_time() - began
            if message is None:
                is_slow = True
                raise _BrokenOffError
            if message["type"] == "http.request":
                size += len(message.get("body", b""))
                is_whole = not message.get("more_body", False)
            elif not is_whole:
                is_broken = True
                raise _BrokenOffError
            return message

        async def sent(message: Message) -> None:
            nonlocal session, answered, is_started
            if is_slow and not is_started:
                return  # what the application makes of it
            answered += len(message.get("body", b""))
            if message["type"] == "http.response.start":
                is_started = True
                session = Headers(raw=message["headers"]).get(_SESSION, session)
            await send(message)

        try:
            with suppress(_BrokenOffError):
                await self._app(scope, received, sent)
            if is_slow and not is_started:
                await self._slow.refuse(scope, receive, send, size)
            elif is_broken:
                self._broken.count(size)
        finally:
            if session is not None and is_whole and max(size, answered) > _LARGE:
                with anyio.move_on_after(_PATIENCE, shield=True):
                    await self._let_go(scope, session)

    async def _let_go(self, scope: Scope, session: str) -> None:
        """Follow large messages with small ones.

        The SDK holds the last message of a session in each direction until the next one.
        """
        headers = [
            *((name, value) for name, value in scope["headers"] if name.lower() not in (b"content-length", b"te")),
            (_SESSION.encode(), session.encode()),
            (b"content-length", str(len(_PING)).encode()),
        ]

        bodies: list[Message] = [{"type": "http.request", "body": _PING, "more_body": False}]

        async def received() -> Message:
            if not bodies:
                await anyio.sleep_forever()  # nobody leaves
            return bodies.pop()

        async def sent(_message: Message) -> None:
            return

        await self._app({**scope, "headers": headers}, received, sent)
