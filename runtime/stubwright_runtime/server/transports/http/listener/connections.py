"""Connections to the HTTP listener: their timeouts and their maximum number.

At the maximum, a new connection replaces an idle connection, so that idle clients cannot block new clients.
"""

from __future__ import annotations

import asyncio
import errno
import os
import sys
from collections import Counter
from contextvars import copy_context
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final, cast

from .....observability.logs import LogThrottle, log
from .....values.json import is_list
from ..keys import POST, WIRE
from .direct import CLOSE, DirectReader

if TYPE_CHECKING:
    from collections.abc import Coroutine, Mapping

    from uvicorn.protocols.http.flow_control import FlowControl
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle
    from uvicorn.server import ServerState

    from ..events import Response
    from ..posts.post import Post
    from .direct import Endpoint


MOST: Final = 4096
"""The upper bound of the default connection limit, even if the process may open more file descriptors."""

HEAD: Final = 10.0
"""The timeout for a request head in seconds, from the start of the connection or the previous response."""

IDLE: Final = 5
"""The keep-alive timeout in seconds."""

BATCH: Final = 16
"""The number of connections to accept at a time; small, because that many can briefly exceed the limit."""

_FULL: Final = (
    b"HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
    b"Content-Type: text/plain; charset=utf-8\r\nContent-Length: 21\r\n\r\nToo many connections\n"
)
_STATUS_LINES: Final = {status.value: f"HTTP/1.1 {status.value} {status.phrase}\r\n".encode() for status in HTTPStatus}
_NO_ROOM: Final = (errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM)


@dataclass(frozen=True, slots=True)
class Bounds:
    """The limits on open connections.

    Attributes:
        most: The maximum number of connections.
        each: The maximum number per client address; None for no limit.
        head: The timeout for a request head in seconds.
    """

    most: int
    each: int | None
    head: float = HEAD

    @classmethod
    def choose(cls, most: int | None, each: int | None) -> Bounds:
        """Return bounds. By default, half of the file descriptors in total, and half of that per client address.

        Args:
            most: The maximum number of connections; None for the default.
            each: The maximum number per client address; None for the default, 0 for no limit.
        """
        # The server and its handlers also open files and connections.
        total = min(MOST, max(1, _descriptors() // 2)) if most is None else most
        return cls(total, max(1, total // 2) if each is None else each or None)


def _descriptors() -> int:
    if sys.platform == "win32":
        return 2 * MOST
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2 * MOST if limit == resource.RLIM_INFINITY else limit


class _WaitingConnections:
    """Connections that wait for a request. Connections without an earlier request are dropped first."""

    def __init__(self) -> None:
        self._new: dict[Connection, None] = {}
        self._used: dict[Connection, None] = {}

    def add(self, connection: Connection) -> None:
        (self._used if connection.is_used else self._new).setdefault(connection)

    def remove(self, connection: Connection) -> None:
        self._new.pop(connection, None)
        self._used.pop(connection, None)

    def find_first(self) -> Connection | None:
        return next(iter(self._new or self._used), None)

    def has_any_since(self, moment: float) -> bool:
        return any(connection.waits_since >= moment for line in (self._new, self._used) for connection in line)


class Connections:
    """A server's open connections.

    Attributes:
        is_closing: True if the server is stopping, so that connections close after the next response.
    """

    def __init__(self, bounds: Bounds, endpoint: Endpoint | None = None) -> None:
        """Create an empty table of connections.

        Args:
            bounds: The limits on open connections.
            endpoint: The endpoint of the fast path; None to pass all requests to uvicorn.
        """
        self.bounds = bounds
        self.endpoint = endpoint
        self.is_closing = False
        self._kind = _connection_kind()
        self._open: dict[Connection, str] = {}
        self._count_by_address: Counter[str] = Counter()
        self._waiting = _WaitingConnections()
        self._waiting_by_address: dict[str, _WaitingConnections] = {}
        self._refused = LogThrottle(
            log(), "connections refused: %d, because too many are open (see --connections in docs/deploy.md)"
        )
        self._dropped = LogThrottle(log(), "connections closed: %d, because no complete request arrived in time")

    def has_any_since(self, moment: float) -> bool:
        """Return whether a waiting connection was opened, or last responded, at or after a time on the loop's clock."""
        return self._waiting.has_any_since(moment)

    def make_protocol(self, **options: Any) -> Connection:
        """Return the HTTP protocol for a new connection."""
        return self._kind(self, **options)

    def admit(self, connection: Connection, address: str) -> bool:
        """Count a new connection and return whether it is accepted.

        If necessary, close a connection that is waiting for a request.
        """
        bounds = self.bounds
        is_over_limit = bounds.each is not None and self._count_by_address[address] >= bounds.each
        if is_over_limit and not self._make_room(self._waiting_by_address[address]):
            self._refused.count()
            return False
        if len(self._open) >= bounds.most and not self._make_room(self._waiting):
            self._refused.count()
            return False
        self._open[connection] = address
        self._count_by_address[address] += 1
        self._waiting_by_address.setdefault(address, _WaitingConnections())
        return True

    def remove(self, connection: Connection) -> None:
        """Stop counting a closed connection."""
        self.mark_active(connection)
        address = self._open.pop(connection, None)
        if address is not None:
            self._count_by_address[address] -= 1
            if not self._count_by_address[address]:
                del self._count_by_address[address], self._waiting_by_address[address]

    def mark_waiting(self, connection: Connection) -> None:
        """Mark a connection as waiting for a request."""
        if connection in self._open:
            self._waiting.add(connection)
            self._waiting_by_address[self._open[connection]].add(connection)

    def mark_active(self, connection: Connection) -> None:
        """Mark a connection as handling a request."""
        if connection in self._open:
            self._waiting.remove(connection)
            self._waiting_by_address[self._open[connection]].remove(connection)

    def drop(self, connection: Connection) -> None:
        """Close a waiting connection."""
        self._dropped.count()
        self.remove(connection)
        connection.transport.abort()

    def _make_room(self, line: _WaitingConnections) -> bool:
        oldest = line.find_first()
        if oldest is not None:
            self.drop(oldest)
        return oldest is not None


class BufferedTransport:
    """A transport that sends the writes of one event loop iteration, such as a response's head and body, together."""

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes] = []
        self._is_held = False

    def hold(self) -> None:
        """Delay the next write, and send it together with the following write."""
        self._is_held = True

    def write_now(self, data: bytes) -> None:
        """Send the delayed data and then `data`, immediately."""
        self._waiting.append(data)
        self._flush()

    def write(self, data: bytes) -> None:
        """Send data in the event loop's next iteration, or with the next write after `hold`."""
        self._waiting.append(data)
        if not self._is_held:
            if len(self._waiting) == 1:
                self._loop.call_soon(self._flush)
        elif len(self._waiting) > 1:
            self._is_held = False
            self._flush()

    def close(self) -> None:
        """Send delayed data, then close the transport."""
        self._is_held = False
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting and not self._transport.is_closing():
            self._transport.write(b"".join(waiting))

    def __getattr__(self, name: str) -> Any:
        """Return an attribute from the wrapped transport."""
        return getattr(self._transport, name)


class Connection(asyncio.Protocol):
    """A connection. Adds limits, timeouts and the fast path to uvicorn's protocol.

    Attributes:
        is_used: True after the first complete request.
        waits_since: The time on the event loop's clock when the connection opened or last responded.
    """

    transport: asyncio.Transport
    loop: asyncio.AbstractEventLoop
    timeout_keep_alive: float
    timeout_keep_alive_task: asyncio.TimerHandle | None
    access_log: bool
    client: tuple[str, int] | None
    scope: Any
    flow: FlowControl
    tasks: set[asyncio.Task[None]]
    server_state: ServerState

    def __init__(self, connections: Connections, **options: Any) -> None:
        """Create a connection; uvicorn passes the options."""
        super().__init__(**options)
        self.is_used = False
        self.waits_since = 0.0
        self._connections = connections
        self._deadline: float | None = None
        self.address = ""
        self._unsent = 0
        """Bytes that the client had not read when the deadline was last set."""
        self._timer: asyncio.TimerHandle | None = None
        self._seen: object = None
        self._direct = None if connections.endpoint is None else DirectReader(connections.endpoint, self)
        self._is_lost = False
        self._context = copy_context()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Accept the connection, or respond with 503 at the connection limit."""
        peer: object = transport.get_extra_info("peername")
        self.address = str(peer[0]) if is_list(peer) else ""
        if not self._connections.admit(self, self.address):
            # uvicorn's protocol is not initialized, so it must not receive data from this client.
            transport.set_protocol(asyncio.Protocol())
            transport.write(_FULL)
            transport.close()
            return
        self._buffered = BufferedTransport(transport, self.loop)
        super().connection_made(cast("asyncio.Transport", self._buffered))
        self._wait(0.0)

    def connection_lost(self, exc: Exception | None) -> None:
        """Remove the connection and cancel its timer."""
        if self._direct is not None:
            self._direct.release()  # uvicorn logs incomplete requests
        self._connections.remove(self)
        self._is_lost = True
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Pass bytes from the client to the fast path, or to uvicorn without a fast path or with an access log."""
        if self._direct is None or self.access_log:  # only uvicorn writes an access log
            self.feed(data)
        else:
            if self._direct.is_answering:
                self.flow.pause_reading()
            self._direct.read(data)

    def feed(self, data: bytes, more: Mapping[str, Any] | None = None) -> None:
        """Pass bytes to uvicorn, and add `more` to the ASGI scope."""
        super().data_received(data)
        if self.scope is not None:
            self.scope |= {WIRE: self, **(more or {})}
        self._check_request()

    @property
    def is_idle(self) -> bool:
        """True if uvicorn has no request in progress."""
        cycle: RequestResponseCycle | None = getattr(self, "cycle", None)
        return cycle is None or cycle.response_complete

    def on_request(self) -> None:
        """Mark the connection as active."""
        self._deadline = None
        self._connections.mark_active(self)
        self.is_used = True

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Start a task that handles a request."""
        self.tasks.add(self.loop.create_task(self._finish(work)))

    async def _finish(self, work: Coroutine[Any, Any, None]) -> None:
        # A done callback would take one more iteration of the event loop.
        try:
            await work
        finally:
            self.tasks.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def respond(self, response: Response, *, is_last: bool = False) -> None:
        """Send a response, then close the connection if `is_last` is true or the server is stopping."""
        if self.flow.write_paused:
            await self.flow.drain()
        if self._is_lost or self.transport.is_closing():
            return
        headers = [*self.server_state.default_headers, *response.headers]
        if (is_last or self._connections.is_closing) and CLOSE not in headers:
            headers.append(CLOSE)
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        self._buffered.write_now(b"%b%b\r\n%b" % (_STATUS_LINES[response.status], lines, response.body))
        if is_last or self._connections.is_closing:
            self.transport.close()
        self._connections.mark_active(self)
        self._wait(float(self.timeout_keep_alive))
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        if self.timeout_keep_alive_task is None:
            self._close_idle_at(self.waits_since + self.timeout_keep_alive)

    def connect_post(self, data: bytes, post: Post) -> None:
        """Pass the bytes of a request to uvicorn, because its response becomes a stream."""
        if self._is_lost:
            post.abandon()
        else:
            self._context.copy().run(self.feed, data, {POST: post})  # a context that inherits no current call

    def shutdown(self) -> None:
        """Close the connection after the pending response, if any."""
        if self._direct is not None:
            self._direct.release()
        if self._direct is None or not self._direct.is_answering:
            super().shutdown()  # type: ignore[misc]  # uvicorn's protocols have it

    def has_whole_body(self, scope: Mapping[str, Any]) -> bool:
        """Return whether the request body has arrived completely."""
        cycle: RequestResponseCycle | None = getattr(self, "cycle", None)
        return cycle is not None and cycle.scope is scope and not cycle.more_body

    def hold_head(self) -> None:
        """Delay the response head, so that it is sent together with the body."""
        self._buffered.hold()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._connections.mark_active(self)
        self._wait(float(self.timeout_keep_alive))
        super().on_response_complete()  # type: ignore[misc]  # uvicorn's protocols have it
        self._check_request()  # the next request may have arrived already

    def _check_request(self) -> None:
        """Mark the connection as active once a request has arrived completely. Until then, it can be dropped."""
        cycle: RequestResponseCycle | None = getattr(self, "cycle", None)  # missing before the first request
        if cycle is None or cycle.response_complete:
            return
        if cycle is not self._seen:
            self._seen = cycle
            self._deadline = None
            self._connections.mark_active(self)
        if cycle.more_body:
            self._connections.mark_waiting(self)  # the application has its own timeout for bodies
        else:
            self.is_used = True
            self._connections.mark_active(self)

    def _wait(self, more: float) -> None:
        """Set the deadline for the next request head. A partial head does not extend the deadline."""
        self._connections.mark_waiting(self)
        self._unsent = self.transport.get_write_buffer_size()
        self.waits_since = self.loop.time()
        self._deadline = self.waits_since + self._connections.bounds.head + more
        if self._timer is None or self._timer.when() > self._deadline:
            self._set_timer(self._deadline)

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_at(at, self._check_deadline)

    def _check_deadline(self) -> None:
        """Close the connection if its deadline has passed. Otherwise, reschedule the timer.

        Requests only change the deadline, which is cheaper than rescheduling the timer.
        """
        self._timer = None
        if self._deadline is None:
            return
        if self._deadline > self.loop.time():
            self._set_timer(self._deadline)
        elif self.transport.get_write_buffer_size() < self._unsent:  # the client is still reading the response
            self._wait(float(self.timeout_keep_alive))
        else:
            self._connections.drop(self)

    def timeout_keep_alive_handler(self) -> None:
        """Close the connection if it is idle and the client has read the last response."""
        now, end = self.loop.time(), self.waits_since + self.timeout_keep_alive
        self.timeout_keep_alive_task = None
        if self._deadline is None or self.transport.is_closing():
            return
        if end > now:
            self._close_idle_at(end)
        elif self.transport.get_write_buffer_size():
            self._close_idle_at(now + self.timeout_keep_alive)
        else:
            super().timeout_keep_alive_handler()  # type: ignore[misc]  # uvicorn's protocols have it

    def _close_idle_at(self, at: float) -> None:
        # Requests do not reset this timer; when it fires, it checks the time of the last response.
        self.timeout_keep_alive_task = self.loop.call_at(at, self.timeout_keep_alive_handler)


def _connection_kind() -> type[Connection]:
    try:
        from .httptools_parser import HttptoolsConnection
    except ImportError:
        from .h11_parser import H11Connection

        return H11Connection
    return HttptoolsConnection


def log_accept_errors(loop: asyncio.AbstractEventLoop) -> None:
    """Log errors from `accept`, combining repeated ones in one line; asyncio retries later."""
    failed = LogThrottle(log(), "connections not accepted: %d, because the system ran out of resources: %s")

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in _NO_ROOM and "socket" in context:
            failed.count(os.strerror(error.errno))
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(handle)
