"""How a server over HTTP ends: what it has begun goes on, and what only listens ends.

Takes the application and a number of seconds; serves it until it is asked to stop. Left to itself, the library that
sends streams of events cuts all of them off at once, and the answers that they were to carry with them.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Final, cast

import uvicorn
from sse_starlette.sse import AppStatus
from starlette.datastructures import Headers

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable

    from starlette.types import ASGIApp, Receive, Scope, Send

_LATE: Final = 0.25
"""Seconds in which those may say what they want whose connection was there before the server was asked to stop."""

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
        await self._close(sockets or [])
        await super().shutdown(sockets)
        ending.cancel()
        AppStatus.should_exit, AppStatus.enable_automatic_graceful_drain = False, True  # they are the whole process's

    async def _close(self, listeners: list[socket.socket]) -> None:
        """Take what waits at the listeners, close them at once, and leave a moment to what was taken.

        Who was told that the connection is there must not be cut off without an answer: nobody could know whether the
        request was carried out. Who comes later is refused, and knows.
        """
        waiting: list[socket.socket] = []
        for listener in listeners:
            with suppress(OSError):  # as soon as none waits
                while True:
                    waiting.append(listener.accept()[0])
        for server in self.servers:
            server.close()
        loop = asyncio.get_running_loop()
        for connection in waiting:
            await loop.connect_accepted_socket(self._protocol, connection)
        await asyncio.sleep(_LATE)

    def _protocol(self) -> asyncio.Protocol:
        make = cast("Callable[..., asyncio.Protocol]", self.config.http_protocol_class)
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)

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
