"""How a server over HTTP ends: what it has begun goes on for a while, and what only listens ends.

Takes the application and a number of seconds; serves it until it is asked to stop.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, cast

import uvicorn

from .....observability.logs import log
from ...signals import stop_signals
from .connections import (
    BATCH,
    IDLE,
    Bounds,
    Connections,
    protocol_class,
    tell_of_errors,
)

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Generator

    from starlette.types import ASGIApp

    from .direct import Endpoint

_LATE: Final = 0.25
"""Seconds in which those may say what they want whose connection was there before the server was asked to stop."""

_BACKLOG: Final = 2048
"""Connections that may wait to be taken."""

_LAST_ERRORS: Final = 1
"""Seconds for telling those whose requests are cut off, before their connections are."""


class GracefulServer(uvicorn.Server):
    """A server that lets requests under way end, for a while, when it is asked to stop."""

    def __init__(
        self,
        app: ASGIApp,
        seconds: int,
        stop: Callable[[], None],
        cut_off: Callable[[], None] = lambda: None,
        bounds: Bounds | None = None,
    ) -> None:
        """Take the application and what ends it.

        Args:
            app: The application.
            seconds: How long requests under way may go on.
            stop: Called when the server is asked to stop; it ends what only listens.
            cut_off: Called when the time of those requests is over; it answers them.
            bounds: How many connections there may be.
        """
        self._seconds = seconds
        self._stop = stop
        self._cut_off = cut_off
        endpoint: Endpoint | None = getattr(app, "direct_endpoint", None)
        connections = Connections(bounds or Bounds.of(None, None), endpoint)
        super().__init__(
            uvicorn.Config(
                app,
                interface="asgi3",
                http=protocol_class(connections),
                ws="none",
                backlog=BATCH,
                timeout_keep_alive=IDLE,
                log_config=None,
                access_log=log().isEnabledFor(logging.DEBUG),
                lifespan="on",
                timeout_graceful_shutdown=seconds + _LAST_ERRORS,
            )
        )

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve; more connections may wait in the kernel than are taken at once."""
        await super().startup(sockets)
        for listener in sockets or []:
            listener.listen(_BACKLOG)
        tell_of_errors(asyncio.get_running_loop())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Take no more requests, and end when those under way have."""
        self._stop()
        await self._close(sockets or [])
        cutting = asyncio.get_running_loop().call_later(self._seconds, self._cut_off)
        await super().shutdown(sockets)
        cutting.cancel()

    def stop_when_started(self, _number: int, _frame: object) -> None:
        """Handle a signal that arrives before the server listens to signals itself."""
        self.should_exit = True

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Stop at a hangup as well, which uvicorn leaves to end the process at once."""
        is_heard = threading.current_thread() is threading.main_thread()
        added = {*stop_signals()} - {signal.SIGINT, signal.SIGTERM} if is_heard else ()
        before = {number: signal.signal(number, self.handle_exit) for number in added}
        try:
            with super().capture_signals():
                yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)

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
