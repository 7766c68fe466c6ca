"""The connections of the server's own HTTP listener: limits on their number, and on the time to wait for requests.

One that keeps the server waiting makes room for a new one, so that unused connections take no place from others.
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
    from collections.abc import Callable, Coroutine, Mapping

    from uvicorn.protocols.http.flow_control import FlowControl
    from uvicorn.protocols.http.h11_impl import RequestResponseCycle
    from uvicorn.server import ServerState

    from ..events import Response
    from ..posts.post import Post
    from .direct import Endpoint


MOST: Final = 4096
"""The maximum number of open connections, even if descriptors allow more."""

HEAD: Final = 10.0
"""Seconds for the head of a request, from the moment that the connection exists or may be used again."""

IDLE: Final = 5
"""Seconds that a connection may stay open after an answer."""

BATCH: Final = 16
"""Connections accepted at a time. This many may exceed the limit for a moment, so the number is small."""

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
        most: The maximum in all.
        each: The maximum of one address; None if they are not counted.
        head: Seconds for the head of a request.
    """

    most: int
    each: int | None
    head: float = HEAD

    @classmethod
    def choose(cls, most: int | None, each: int | None) -> Bounds:
        """Return the given bounds; by default half of the descriptors, and half of that for one address.

        Args:
            most: The maximum in all; None for the default.
            each: The maximum of one address; None for the default, 0 for no limit of its own.
        """
        # The server and its handlers open files and connections, too.
        total = min(MOST, max(1, _descriptors() // 2)) if most is None else most
        return cls(total, max(1, total // 2) if each is None else each or None)


def _descriptors() -> int:
    """Return the maximum number of open file descriptors of the process."""
    if sys.platform == "win32":
        return 2 * MOST
    import resource

    limit, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return 2 * MOST if limit == resource.RLIM_INFINITY else limit


class _WaitingConnections:
    """Connections that keep the server waiting: first the ones without a request so far, then the others."""

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
    """All connections of one server.

    Attributes:
        is_closing: True if each of them ends with its next answer, since the server is asked to stop.
    """

    def __init__(self, bounds: Bounds, endpoint: Endpoint | None = None) -> None:
        """Take the bounds, and the endpoint whose requests are answered directly."""
        self.bounds = bounds
        self.endpoint = endpoint
        self.is_closing = False
        self._kind = _connection_kind()
        self._open: dict[Connection, str] = {}
        self._of: Counter[str] = Counter()
        self._waiting = _WaitingConnections()
        self._waiting_of: dict[str, _WaitingConnections] = {}
        self._refused = LogThrottle(
            log(), "connections refused: %d, because too many are open (see --connections in docs/deploy.md)"
        )
        self._dropped = LogThrottle(log(), "connections closed: %d, because no complete request arrived in time")

    def has_any_since(self, moment: float) -> bool:
        """Return whether a connection waits for a request that was made or answered since then, by the loop's clock."""
        return self._waiting.has_any_since(moment)

    def make_protocol(self, **options: Any) -> Connection:
        """Return a protocol that speaks HTTP on a new connection."""
        return self._kind(self, **options)

    def admit(self, connection: Connection, address: str) -> bool:
        """Return whether a new connection may stay, and count it. One that keeps the server waiting makes room."""
        bounds = self.bounds
        is_over = bounds.each is not None and self._of[address] >= bounds.each
        if is_over and not self._make_room(self._waiting_of[address]):
            self._refused.count()
            return False
        if len(self._open) >= bounds.most and not self._make_room(self._waiting):
            self._refused.count()
            return False
        self._open[connection] = address
        self._of[address] += 1
        self._waiting_of.setdefault(address, _WaitingConnections())
        return True

    def remove(self, connection: Connection) -> None:
        """Note that a connection is closed."""
        self.mark_active(connection)
        address = self._open.pop(connection, None)
        if address is not None:
            self._of[address] -= 1
            if not self._of[address]:
                del self._of[address], self._waiting_of[address]

    def mark_waiting(self, connection: Connection) -> None:
        """Note that a connection keeps the server waiting from now on, unless it does so already."""
        if connection in self._open:
            self._waiting.add(connection)
            self._waiting_of[self._open[connection]].add(connection)

    def mark_active(self, connection: Connection) -> None:
        """Note that a connection does not keep the server waiting any more."""
        if connection in self._open:
            self._waiting.remove(connection)
            self._waiting_of[self._open[connection]].remove(connection)

    def drop(self, connection: Connection) -> None:
        """Close a connection that kept the server waiting."""
        self._dropped.count()
        self.remove(connection)
        connection.transport.abort()

    def _make_room(self, line: _WaitingConnections) -> bool:
        """Close the first connection of a line; return whether there was one."""
        oldest = line.find_first()
        if oldest is not None:
            self.drop(oldest)
        return oldest is not None


class BufferedTransport:
    """A transport that joins the writes of one turn of the event loop: the head of an answer and its body.

    All but writing and closing is the transport's own.
    """

    def __init__(self, transport: asyncio.Transport, loop: asyncio.AbstractEventLoop) -> None:
        """Take the transport."""
        self._transport = transport
        self._loop = loop
        self._waiting: list[bytes] = []
        self._is_held = False

    def hold(self) -> None:
        """Delay the next write until the one after it, and send both together."""
        self._is_held = True

    def write_now(self, data: bytes) -> None:
        """Send data immediately, after the delayed data."""
        self._waiting.append(data)
        self._flush()

    def write(self, data: bytes) -> None:
        """Send data at the end of the turn."""
        self._waiting.append(data)
        if not self._is_held:
            if len(self._waiting) == 1:
                self._loop.call_soon(self._flush)
        elif len(self._waiting) > 1:
            self._is_held = False
            self._flush()

    def close(self) -> None:
        """Close the transport when all is sent."""
        self._is_held = False
        self._flush()
        self._transport.close()

    def _flush(self) -> None:
        waiting, self._waiting = self._waiting, []
        if waiting and not self._transport.is_closing():
            self._transport.write(b"".join(waiting))

    def __getattr__(self, name: str) -> Any:
        """Return any other attribute of the transport."""
        return getattr(self._transport, name)


class Connection(asyncio.Protocol):
    """One connection, in front of uvicorn's protocol, which waits for a request forever; here there is a deadline.

    Attributes:
        is_used: True if a whole request has come on it.
        waits_since: The time on the loop's clock at which it was made, or last answered.
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
        """Take all connections of the server, and uvicorn's own options."""
        super().__init__(**options)
        self.is_used = False
        self.waits_since = 0.0
        self._all = connections
        self._deadline: float | None = None
        self.address = ""
        self._unsent = 0
        """Bytes of the last answer that the client had not read yet at the last look at the clock."""
        self._timer: asyncio.TimerHandle | None = None
        self._seen: object = None
        self._direct = None if connections.endpoint is None else DirectReader(connections.endpoint, self)
        self._is_lost = False
        self._context = copy_context()

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Keep the connection, or refuse it immediately."""
        peer: object = transport.get_extra_info("peername")
        self.address = str(peer[0]) if is_list(peer) else ""
        if not self._all.admit(self, self.address):
            # uvicorn's protocol is not set up, and must not receive data from this client.
            transport.set_protocol(asyncio.Protocol())
            transport.write(_FULL)
            transport.close()
            return
        self._corked = BufferedTransport(transport, self.loop)
        super().connection_made(cast("asyncio.Transport", self._corked))
        self._wait(0.0)

    def connection_lost(self, exc: Exception | None) -> None:
        """Stop counting the connection."""
        if self._direct is not None:
            self._direct.release()  # the log has a line of each request that breaks off
        self._all.remove(self)
        self._is_lost = True
        if self._timer is not None:
            self._timer.cancel()
        super().connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """Hear of a request."""
        if self._direct is None or self.access_log:  # uvicorn writes a line for each request then
            self.feed(data)
        else:
            if self._direct.is_answering:
                self.flow.pause_reading()
            self._direct.read(data)

    def feed(self, data: bytes, more: Mapping[str, Any] | None = None) -> None:
        """Pass bytes to uvicorn, and extend the scope of the request."""
        super().data_received(data)
        if self.scope is not None:
            self.scope |= {WIRE: self, **(more or {})}
        self._look()

    @property
    def is_between(self) -> bool:
        """True if uvicorn has no request in progress."""
        cycle: RequestResponseCycle | None = getattr(self, "cycle", None)
        return cycle is None or cycle.response_complete

    def on_request(self) -> None:
        """Note the arrival of a request."""
        self._deadline = None
        self._all.mark_active(self)
        self.is_used = True

    def start(self, work: Coroutine[Any, Any, None]) -> None:
        """Answer a request."""
        self.tasks.add(self.loop.create_task(self._finish(work)))

    async def _finish(self, work: Coroutine[Any, Any, None]) -> None:
        """Await the answer to a request, and forget it: a callback would take one more turn of the event loop."""
        try:
            await work
        finally:
            self.tasks.discard(cast("asyncio.Task[None]", asyncio.current_task()))

    async def respond(self, response: Response, *, is_last: bool = False) -> None:
        """Answer the request; with `is_last`, the connection ends then."""
        if self.flow.write_paused:
            await self.flow.drain()
        if self._is_lost or self.transport.is_closing():
            return
        headers = [*self.server_state.default_headers, *response.headers]
        if (is_last or self._all.is_closing) and CLOSE not in headers:
            headers.append(CLOSE)
        lines = b"".join([b"%b: %b\r\n" % header for header in headers])
        self._corked.write_now(b"%b%b\r\n%b" % (_STATUS_LINES[response.status], lines, response.body))
        if is_last or self._all.is_closing:
            self.transport.close()
        self._all.mark_active(self)
        self._wait(float(self.timeout_keep_alive))
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        if self.timeout_keep_alive_task is None:
            self._close_idle_at(self.waits_since + self.timeout_keep_alive)

    def connect_post(self, data: bytes, post: Post) -> None:
        """Pass a request that continues to uvicorn."""
        if self._is_lost:
            post.abandon()
        else:
            self._context.copy().run(self.feed, data, {POST: post})  # in which no call is in progress

    def shutdown(self) -> None:
        """Close when the answer that is due is sent."""
        if self._direct is not None:
            self._direct.release()
        if self._direct is None or not self._direct.is_answering:
            super().shutdown()  # type: ignore[misc]  # uvicorn's protocols have it

    def has_all_of(self, scope: Mapping[str, Any]) -> bool:
        """Return whether a request has come with all of its body."""
        cycle: RequestResponseCycle | None = getattr(self, "cycle", None)
        return cycle is not None and cycle.scope is scope and not cycle.more_body

    def hold_head(self) -> None:
        """Send the head of the answer together with its body, which follows immediately."""
        self._corked.hold()

    def on_response_complete(self) -> None:
        """Wait for the next request."""
        self._all.mark_active(self)
        self._wait(float(self.timeout_keep_alive))
        super().on_response_complete()  # type: ignore[misc]  # uvicorn's protocols have it; it may find that it has come
        self._look()

    def _look(self) -> None:
        """Check whether the head of a request and all of its body have arrived."""
        cycle: RequestResponseCycle | None = getattr(self, "cycle", None)  # there is none before the first request
        if cycle is None or cycle.response_complete:
            return
        if cycle is not self._seen:
            self._seen = cycle
            self._deadline = None
            self._all.mark_active(self)
        if cycle.more_body:
            self._all.mark_waiting(self)  # the time limit is the application's, since only it knows when it reads
        else:
            self.is_used = True
            self._all.mark_active(self)

    def _wait(self, more: float) -> None:
        """Give the client time for the head of a request, which no part of one prolongs."""
        self._all.mark_waiting(self)
        self._unsent = self.transport.get_write_buffer_size()
        self.waits_since = self.loop.time()
        self._deadline = self.waits_since + self._all.bounds.head + more
        if self._timer is None or self._timer.when() > self._deadline:
            self._set_timer(self._deadline)

    def _set_timer(self, at: float) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = self.loop.call_at(at, self._look_at_clock)

    def _look_at_clock(self) -> None:
        """Close the connection if the client's time has ended. It seldom is: one timer moves on, not one a request."""
        self._timer = None
        if self._deadline is None:
            return
        if self._deadline > self.loop.time():
            self._set_timer(self._deadline)
        elif self.transport.get_write_buffer_size() < self._unsent:  # it reads: its time begins when it has all
            self._wait(float(self.timeout_keep_alive))
        else:
            self._all.drop(self)

    def timeout_keep_alive_handler(self) -> None:
        """Close an idle connection: no request is in progress, and the last answer has been read for some time."""
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
        """Look then whether to close; requests do not set this timer again, but move the time that it looks for."""
        self.timeout_keep_alive_task = self.loop.call_at(at, self.timeout_keep_alive_handler)


def _connection_kind() -> type[Connection]:
    """Return the connection class for the HTTP parser: httptools, from the extra `server`, otherwise h11."""
    try:
        from .parsing_c import HttptoolsConnection
    except ImportError:
        from .parsing_python import H11Connection

        return H11Connection
    return HttptoolsConnection


def log_accept_errors(loop: asyncio.AbstractEventLoop) -> None:
    """Log failures to take connections in one line, even if there are many; asyncio tries again later."""
    failed = LogThrottle(log(), "connections not taken: %d attempts, because the system ran out of resources: %s")

    def handle(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error = context.get("exception")
        if isinstance(error, OSError) and error.errno in _NO_ROOM and "socket" in context:
            failed.count(os.strerror(error.errno))
        else:
            loop.default_exception_handler(context)

    loop.set_exception_handler(handle)


def choose_protocol(connections: Connections) -> type[asyncio.Protocol]:
    """Return the protocol class for uvicorn."""
    make: Callable[..., asyncio.Protocol] = connections.make_protocol
    return cast("type[asyncio.Protocol]", make)
