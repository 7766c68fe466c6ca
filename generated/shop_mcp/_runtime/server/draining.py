# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""How a server over HTTP ends: what it has begun goes on, and what only listens ends.

Takes the application and a number of seconds; serves it until it is asked to stop. Left to itself, the library that
sends streams of events cuts all of them off at once, and the answers that they were to carry with them.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Final

import uvicorn
from sse_starlette.sse import AppStatus
from starlette.datastructures import Headers

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

_LISTENING: Final = "subscriptions/listen"
"""The method whose requests are never answered but by their end (MCP 2026-07-28)."""


class Draining(uvicorn.Server):
    """A server that lets requests under way end, for a while, when it is asked to stop."""

    def __init__(self, app: ASGIApp, seconds: int, stop: Callable[[], None]) -> None:
        """Take the application, how long requests may go on, and what is called when the server is asked to stop."""
        self._app = app
        self._stop = stop
        self._under_way = 0
        self._none = asyncio.Event()
        super().__init__(
            uvicorn.Config(
                self._counted,
                interface="asgi3",
                log_config=None,
                lifespan="on",
                timeout_graceful_shutdown=seconds,
            )
        )
        AppStatus.enable_automatic_graceful_drain = False

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more requests, and end when those under way have."""
        self._stop()
        ending = asyncio.create_task(self._end_streams())
        await super().shutdown(sockets)
        ending.cancel()

    async def _end_streams(self) -> None:
        if self._under_way:
            await self._none.wait()
        AppStatus.should_exit = True

    async def _counted(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_call = scope["type"] == "http" and scope["method"] == "POST"
        if not is_call or Headers(scope=scope).get("mcp-method") == _LISTENING:
            await self._app(scope, receive, send)
            return
        self._under_way += 1
        self._none.clear()
        try:
            await self._app(scope, receive, send)
        finally:
            self._under_way -= 1
            if not self._under_way:
                self._none.set()
