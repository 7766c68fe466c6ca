"""Graceful shutdown of HTTP servers: closes listening streams and lets pending requests complete in a grace period."""

from __future__ import annotations

import asyncio
import logging
import signal
import threading
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Final, cast

import uvicorn
from uvicorn.lifespan.on import LifespanOn

from .....mcp.errors import INTERNAL_ERROR
from .....observability.logs import log
from ....app.core import STOPPED
from ....execution.event_loop import run_loop
from ....execution.signals import stop_signals
from ..rejections import Rejection
from .connections import (
    BATCH,
    IDLE,
    Bounds,
    Connections,
    log_accept_errors,
)
from .direct import CLOSE

if TYPE_CHECKING:
    import socket
    from collections.abc import Callable, Generator
    from types import FrameType

    from starlette.types import ASGIApp, Message, Receive, Scope, Send
    from uvicorn.lifespan.on import LifespanSendMessage

    from .direct import Endpoint

_LATE: Final = 0.25
"""The minimum time in seconds after a stop signal in which open connections can send another request."""

_LATEST: Final = 1.25
"""The maximum time in seconds after a stop signal in which open connections can send another request. A connection
counts while it was opened, or last responded, less than this time ago.
"""

_LOOK: Final = 0.02
"""Seconds between two checks for connections that can still send a request."""

_BACKLOG: Final = 2048
"""The length of the kernel's accept queue."""

_LAST_ERRORS: Final = 1
"""Seconds to send the errors for aborted requests before their connections are closed."""


class _Lifespan(LifespanOn):
    """An application's lifespan. A stop signal during startup aborts the startup.

    Attributes:
        is_aborted: True if a stop signal aborted the startup.
        is_ending: True while the application is shutting down.
    """

    def __init__(self, config: uvicorn.Config, asked: asyncio.Event, is_explained: Callable[[], bool]) -> None:
        super().__init__(config)
        self.is_aborted = False
        self.is_ending = False
        self._asked = asked
        self._is_explained = is_explained

    async def startup(self) -> None:
        """Start the application. Abort the startup if a stop signal arrives first."""
        starting, asked = asyncio.create_task(super().startup()), asyncio.create_task(self._asked.wait())
        await asyncio.wait([starting, asked], return_when=asyncio.FIRST_COMPLETED)
        asked.cancel()
        if starting.done():
            starting.result()
        else:
            log().info("stopping before the handlers have started")
            starting.cancel()
            self.is_aborted = self.should_exit = True

    async def shutdown(self) -> None:
        self.is_ending = True
        await super().shutdown()
        self.is_ending = False

    async def send(self, message: LifespanSendMessage) -> None:
        """Process a message from the application. Remove the traceback of a failure that is reported elsewhere."""
        if self.is_aborted or self._is_explained():
            if message["type"] == "lifespan.startup.failed":
                message = {"type": "lifespan.startup.failed", "message": ""}
            elif message["type"] == "lifespan.shutdown.failed":
                message = {"type": "lifespan.shutdown.failed", "message": ""}
        await super().send(message)


class _ClosingApp:
    """An ASGI wrapper for the time after a stop signal.

    Adds `Connection: close` to responses, and responds to requests whose handlers do not stop.
    """

    def __init__(self, app: ASGIApp, connections: Connections) -> None:
        self._app = app
        self._connections = connections

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        has_started = False

        async def send_and_close(message: Message) -> None:
            nonlocal has_started
            if message["type"] == "http.response.start":
                has_started = True
                if self._connections.is_closing and CLOSE not in message["headers"]:
                    message = {**message, "headers": [*message["headers"], CLOSE]}
            await send(message)

        try:
            await self._app(scope, receive, send_and_close)
        except asyncio.CancelledError:
            if scope["type"] != "http" or not self._connections.is_closing:
                raise
            log().warning("a handler is still running; its request ends without a result")
            body = b""
            if not has_started:
                response = Rejection(500, STOPPED, INTERNAL_ERROR).answer()
                body = response.body
                headers = [*response.headers, CLOSE]
                await send({"type": "http.response.start", "status": response.status, "headers": headers})
            await send({"type": "http.response.body", "body": body})


class GracefulServer(uvicorn.Server):
    """A uvicorn server that completes pending requests before it stops."""

    def __init__(
        self,
        app: ASGIApp,
        seconds: int,
        stop: Callable[[], None],
        abort_requests: Callable[[], None] = lambda: None,
        bounds: Bounds | None = None,
        is_explained: Callable[[], bool] = lambda: False,
    ) -> None:
        """Create a server for an application.

        Args:
            app: The application.
            seconds: The grace period for pending requests, in seconds.
            stop: Closes listening streams; called after a stop signal.
            abort_requests: Ends the remaining requests with errors; called after the grace period.
            bounds: The limits on open connections; by default `Bounds.choose(None, None)`.
            is_explained: Returns whether the application's failure is reported elsewhere, so that its traceback is
                omitted.
        """
        self._seconds = seconds
        self._stop = stop
        self._abort_requests = abort_requests
        self._is_explained = is_explained
        self._asked = asyncio.Event()
        self._loop: asyncio.AbstractEventLoop | None = None
        endpoint: Endpoint | None = getattr(app, "direct_endpoint", None)
        connections = self._connections = Connections(bounds or Bounds.choose(None, None), endpoint)
        super().__init__(
            uvicorn.Config(
                _ClosingApp(app, connections),
                interface="asgi3",
                http=cast("type[asyncio.Protocol]", connections.make_protocol),
                ws="none",
                backlog=BATCH,
                timeout_keep_alive=IDLE,
                log_config=None,
                access_log=log().isEnabledFor(logging.DEBUG),
                lifespan="on",
                timeout_graceful_shutdown=seconds + _LAST_ERRORS,
            )
        )

    @property
    def is_aborted(self) -> bool:
        """True if a stop signal arrived before the application started."""
        return isinstance(self.lifespan, _Lifespan) and self.lifespan.is_aborted

    def run(self, sockets: list[socket.socket] | None = None) -> None:
        """Serve until a stop signal arrives."""
        run_loop(self.serve(sockets), self.config.get_loop_factory())

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start serving. The accept queue is longer than uvicorn's."""
        self._loop = asyncio.get_running_loop()
        self.lifespan = _Lifespan(self.config, self._asked, self._is_explained)
        await super().startup(sockets)
        for listener in sockets or []:
            listener.listen(_BACKLOG)
        log_accept_errors(asyncio.get_running_loop())

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Stop accepting requests and complete pending ones."""
        self._stop()
        await self._close(sockets or [])
        cutting = asyncio.get_running_loop().call_later(self._seconds, self._abort_requests)
        await super().shutdown(sockets)
        cutting.cancel()

    def stop_when_started(self, _number: int, _frame: object) -> None:
        """Handle a signal that arrives before uvicorn has installed its handlers."""
        self.should_exit = True
        self._asked.set()

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Handle a signal, even during the application's startup and shutdown, when uvicorn ignores signals."""
        lifespan = getattr(self, "lifespan", None)  # uvicorn sets it after its signal handlers
        is_repeated = sig == signal.SIGINT and self.should_exit and self.started
        if is_repeated or (isinstance(lifespan, _Lifespan) and lifespan.is_ending):
            # The shutdown may hang, and uvicorn has no timeout, so the second signal kills the process immediately.
            signal.signal(sig, signal.SIG_DFL)
            signal.raise_signal(sig)
        super().handle_exit(sig, frame)
        if not self.started and self._loop is not None:
            self._loop.call_soon_threadsafe(self._asked.set)

    @contextmanager
    def capture_signals(self) -> Generator[None, None, None]:
        """Handle SIGHUP like SIGTERM during the block; by default, it kills the process immediately."""
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
        """Accept the queued connections, close the listeners, and wait for requests on open connections.

        A client that has connected must receive a response, because otherwise the effect of its request would be
        unknown. Responses contain `Connection: close`.
        """
        self._connections.is_closing = True
        waiting: list[socket.socket] = []
        for listener in listeners:
            with suppress(OSError):  # raised when the queue is empty
                while True:
                    waiting.append(listener.accept()[0])
        for server in self.servers:
            server.close()
        loop = asyncio.get_running_loop()
        for connection in waiting:
            await loop.connect_accepted_socket(self._protocol, connection)
        asked = loop.time()
        await asyncio.sleep(_LATE)
        end = asked + _LATEST
        while loop.time() < end and self._connections.has_any_since(loop.time() - _LATEST):  # noqa: ASYNC110 - rare
            await asyncio.sleep(_LOOK)

    def _protocol(self) -> asyncio.Protocol:
        make = cast("Callable[..., asyncio.Protocol]", self.config.http_protocol_class)
        return make(config=self.config, server_state=self.server_state, app_state=self.lifespan.state)
