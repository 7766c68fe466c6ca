"""Requests over HTTP, seen before the SDK sees them: those that break off, and large ones that would stay in memory.

Takes and gives ASGI; changes nothing of requests and responses.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

import anyio
from starlette.datastructures import Headers

from ..logs import logger

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_LOG: Final = logger(__name__)

_LARGE: Final = 4096
"""Bytes. Parsed, a message can take twenty times as much, so that this is as much as an idle session takes anyway."""

_PING: Final = b'{"jsonrpc":"2.0","id":"toolwright/ping","method":"ping"}'
_SESSION: Final = "mcp-session-id"
_PATIENCE: Final = 5.0  # seconds


class _BrokenOff(Exception):
    """The client was gone before its request was whole."""


class Uploads:
    """Passes requests on."""

    def __init__(self, app: ASGIApp) -> None:
        """Take the application that answers them."""
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; one that breaks off is a line in the log."""
        if scope["type"] != "http" or scope["method"] != "POST":
            await self._app(scope, receive, send)
            return
        session = Headers(scope=scope).get(_SESSION)
        size, answered, is_whole = 0, 0, False

        async def received() -> Message:
            nonlocal size, is_whole
            message = await receive()
            if message["type"] == "http.request":
                size += len(message.get("body", b""))
                is_whole = not message.get("more_body", False)
            elif not is_whole:
                raise _BrokenOff
            return message

        async def sent(message: Message) -> None:
            nonlocal session, answered
            answered += len(message.get("body", b""))
            if message["type"] == "http.response.start":
                session = Headers(raw=message["headers"]).get(_SESSION, session)
            await send(message)

        try:
            await self._app(scope, received, sent)
        except _BrokenOff:
            _LOG.warning("a client left in the middle of a request, after %d bytes of its body", size)
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
