"""An HTTP/1.1 transport over asyncio and httptools, which takes a fraction of the CPU time of httpx2's transport."""

from __future__ import annotations

import asyncio
import os
import re
import select
import sys
import time
from collections import deque
from functools import partial
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import httptools
import httpx2

if TYPE_CHECKING:
    import ssl
    from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence

    _Origin = tuple[str, str, int | None]
    _Created = tuple[asyncio.Transport, "_Connection"]

_MOST_CONNECTIONS: Final = 100
"""This limit and the next two have the defaults of `httpx2.Limits`."""

_MOST_IDLE: Final = 20
_IDLE_SECONDS: Final = 5.0

_MOST_HEAD: Final = 100 * 1024
"""The maximum size of a response head in bytes, as in httpcore2."""

_MOST_BUFFERED: Final = 256 * 1024
"""The number of unread bytes of a response at which reading from its connection pauses."""

_NEXT_ADDRESS: Final = 0.25
"""Seconds after which a connection to a host's next address is also attempted (RFC 8305)."""

_CLOSED: Final = "the client was closed"


class DirectTransport(httpx2.AsyncBaseTransport):
    """A transport with a pool of direct connections; proxies are not supported."""

    def __init__(self, context: ssl.SSLContext) -> None:
        """Create a transport with a TLS context."""
        context.set_alpn_protocols(["http/1.1"])
        self._context = context
        self._idle: list[_Connection] = []
        self._used: set[_Connection] = set()
        self._connecting: set[asyncio.Task[_Created]] = set()
        self._is_closed = False
        self._free = asyncio.Semaphore(_MOST_CONNECTIONS)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Send a request and return the response once its head has arrived.

        Raises:
            httpx2.TransportError: The server cannot be reached, or its response is not valid HTTP.
        """
        head = _write_head(request.method, request.url, request.headers.raw)
        is_whole = isinstance(request.stream, httpx2.ByteStream)
        stream = None if is_whole else _split_body(request)
        data = head + request.content if is_whole else head
        timeout = request.extensions.get("timeout", {})
        body = await self._exchange(request.method, request.url, data, stream, timeout)
        connection = body.connection
        return httpx2.Response(
            connection.status,
            headers=connection.headers,
            stream=body,
            extensions={"http_version": b"HTTP/" + connection.version, "reason_phrase": connection.reason},
        )

    async def send(
        self, method: str, url: httpx2.URL, headers: Mapping[str, str], content: bytes, seconds: float
    ) -> Body:
        """Send a request without httpx2 objects and return the response once its head has arrived.

        Args:
            method: The HTTP method.
            url: The URL.
            headers: All headers, including `Host` and `Content-Length`.
            content: The body.
            seconds: The timeout in seconds for connecting and for sending the request.

        Raises:
            httpx2.TransportError: As for `handle_async_request`.
        """
        raw = [(name.encode("ascii"), value.encode("ascii")) for name, value in headers.items()]
        timeout = {"pool": seconds, "connect": seconds, "write": seconds}
        return await self._exchange(method, url, _write_head(method, url, raw) + content, None, timeout)

    async def _exchange(
        self,
        method: str,
        url: httpx2.URL,
        data: bytes,
        stream: AsyncIterator[bytes] | None,
        limits: Mapping[str, float | None],
    ) -> Body:
        """Send a request, whose first bytes are `data`. Return the response once its head has arrived."""
        if self._free.locked():
            try:
                await asyncio.wait_for(self._free.acquire(), limits.get("pool"))
            except TimeoutError as error:
                raise httpx2.PoolTimeout("all connections are in use") from error
        else:
            await self._free.acquire()
        connection: _Connection | None = None
        try:
            origin = (url.scheme, url.host, url.port)
            connection = self._find_idle(origin) or await self._connect(url, origin, limits.get("connect"))
            self._used.add(connection)
            await connection.send(method, data, stream, limits.get("write"), limits.get("read"))
        except BaseException:
            self.release(connection)
            raise
        return Body(self, connection)

    async def aclose(self) -> None:
        """Close all connections. Requests that have not received a complete response fail."""
        self._is_closed = True
        for task in self._connecting:
            task.cancel()
        for connection in self._used:
            if not connection.is_complete:
                connection.fail(httpx2.ReadError(_CLOSED))
        while self._idle:
            self._idle.pop().close()
        await asyncio.sleep(0)  # the event loop closes the sockets in its next iteration

    def release(self, connection: _Connection | None) -> None:
        """Return a connection to the pool, or close the connection if it cannot be reused."""
        self._free.release()
        if connection is None:
            return
        self._used.discard(connection)
        self._close_expired()
        if connection.is_reusable and len(self._idle) < _MOST_IDLE and not self._is_closed:
            connection.since = time.monotonic()
            self._idle.append(connection)
        else:
            connection.close()

    def _close_expired(self) -> None:
        oldest = time.monotonic() - _IDLE_SECONDS
        while self._idle and self._idle[0].since < oldest:
            self._idle.pop(0).close()

    def _find_idle(self, origin: _Origin) -> _Connection | None:
        self._close_expired()
        for connection in reversed(self._idle):
            if connection.origin == origin:
                self._idle.remove(connection)
                if connection.is_reusable and not connection.has_input():
                    return connection
                connection.close()
        return None

    async def _connect(self, url: httpx2.URL, origin: _Origin, seconds: float | None) -> _Connection:
        if self._is_closed:
            raise httpx2.ConnectError(_CLOSED)
        is_tls = url.scheme == "https"
        host = url.raw_host.decode("ascii")
        loop = asyncio.get_running_loop()
        race: dict[str, Any] = {}
        if isinstance(loop, asyncio.BaseEventLoop):  # uvloop tries a host's addresses one after the other
            race["happy_eyeballs_delay"] = _NEXT_ADDRESS
        create = partial(
            loop.create_connection,
            lambda: _Connection(origin),
            host,
            url.port or (443 if is_tls else 80),
            ssl=self._context if is_tls else None,
            server_hostname=host if is_tls else None,
            **race,
        )
        # asyncio would leak a connected socket if it were cancelled between two steps, so connecting always completes.
        connecting = loop.create_task(_limit(create, seconds))
        self._connecting.add(connecting)
        connecting.add_done_callback(self._connecting.discard)
        try:
            await asyncio.wait([connecting])
            if connecting.cancelled():
                raise httpx2.ConnectError(_CLOSED)
            return connecting.result()[1]
        except asyncio.CancelledError:
            connecting.add_done_callback(_close_unused)
            raise
        except TimeoutError as error:
            raise httpx2.ConnectTimeout("connecting timed out") from error
        except OSError as error:
            raise httpx2.ConnectError(str(error)) from _find_system_error(error)


async def _limit(create: Callable[[], Awaitable[_Created]], seconds: float | None) -> _Created:
    async with asyncio.timeout(seconds):
        return await create()


def _close_unused(connecting: asyncio.Task[_Created]) -> None:
    if not connecting.cancelled() and connecting.exception() is None:
        connecting.result()[1].close()


class _Connection(asyncio.Protocol):
    """A connection, and the response that it receives.

    Attributes:
        since: The monotonic time at which the connection became idle.
        version: The response's HTTP version, such as `1.1`.
        is_complete: True if the whole response has arrived.
        failure: The error that closed the connection, or `None`.
    """

    def __init__(self, origin: _Origin) -> None:
        self.origin = origin
        self.since = 0.0
        self.failure: httpx2.TransportError | None = None
        self._transport: Any = None
        self._is_paused = False
        self._read_seconds: float | None = None
        self._is_writable = True
        self._waiter: asyncio.Future[None] | None = None
        self._parser = httptools.HttpResponseParser(self)
        # As lenient as h11. Each response belongs to a known request, so an ambiguous end cannot affect other clients.
        self._parser.set_dangerous_leniencies(
            lenient_headers=True,
            lenient_chunked_length=True,
            lenient_version=True,
            lenient_optional_cr_before_lf=True,
            lenient_spaces_after_chunk_size=True,
        )
        self._start()
        self.is_complete = True

    def _start(self) -> None:
        self.status = 0
        self.version = b"1.1"
        self.reason = b""
        self.headers: list[tuple[bytes, bytes]] = []
        self.is_complete = False
        self._has_head = False
        self._has_body = True
        self._ends_with_connection = True
        self._keeps_alive = False
        self._head_size = 0
        self._pieces: deque[bytes] = deque()
        self._buffered = 0

    @property
    def is_reusable(self) -> bool:
        """True if the connection can send another request: it is open, and the last response was read completely."""
        return (
            self.is_complete
            and self._keeps_alive
            and not self._is_paused
            and self.failure is None
            and not self._transport.is_closing()
        )

    def has_input(self) -> bool:
        """Return whether the server has closed an idle connection, or has sent data without a request."""
        socket = self._transport.get_extra_info("socket")
        if sys.platform == "win32":
            return bool(select.select([socket], [], [], 0)[0])
        poll = select.poll()
        poll.register(socket.fileno(), select.POLLIN)
        return bool(poll.poll(0))

    async def send(
        self,
        method: str,
        data: bytes,
        stream: AsyncIterator[bytes] | None,
        seconds: float | None,
        read_seconds: float | None,
    ) -> None:
        """Send a request and wait for the head of its response.

        Args:
            method: The HTTP method.
            data: The request head, followed by the body or its start.
            stream: The rest of the body, or `None`.
            seconds: The time limit for sending each piece of the body, or `None`.
            read_seconds: The time limit for receiving each piece of the response, or `None`.

        Raises:
            httpx2.TransportError: No valid response arrives in time.
        """
        self._start()
        self._read_seconds = read_seconds
        self._has_body = method != "HEAD"  # whatever length the response's headers declare
        await self._write(data, seconds)
        if stream is not None:
            async for piece in stream:
                if self._has_head or self.failure is not None:
                    self._keeps_alive = False  # the rest of the request body is not sent
                    break
                await self._write(piece, seconds)
        while not self._has_head:
            if self.failure is not None:
                raise self.failure
            await self.receive()

    async def _write(self, data: bytes, seconds: float | None) -> None:
        """Write bytes, then wait until more can be written or a response arrives."""
        self._transport.write(data)
        if not self._is_writable:
            try:
                async with asyncio.timeout(seconds):
                    while not (self._is_writable or self._has_head or self.failure):
                        await self._wait()
            except TimeoutError as error:
                raise httpx2.WriteTimeout("sending the request timed out") from error

    async def receive(self) -> None:
        """Wait until more bytes of the response arrive. Raises httpx2.ReadTimeout."""
        if self._read_seconds is None:
            await self._wait()
            return
        try:
            async with asyncio.timeout(self._read_seconds):
                await self._wait()
        except TimeoutError as error:
            raise httpx2.ReadTimeout("reading the response timed out") from error

    async def _wait(self) -> None:
        self._waiter = asyncio.get_running_loop().create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None

    def pop(self) -> bytes:
        data = self._pieces.popleft() if len(self._pieces) == 1 else b"".join(self._pieces)
        self._pieces.clear()
        self._buffered = 0
        if self._is_paused:
            self._is_paused = False
            self._transport.resume_reading()
        return data

    def close(self) -> None:
        # `abort` does not send the rest of the request.
        self._transport.abort()

    def fail(self, error: httpx2.TransportError) -> None:
        """Close the connection because of an error, which a request without a complete response then raises."""
        self.failure = error
        self._transport.abort()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        if self.is_complete:  # otherwise, the data would become part of the next response
            self.fail(httpx2.RemoteProtocolError("the server sent more than its response"))
            return
        if not self._has_head:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except (httptools.HttpParserError, httptools.HttpParserUpgrade) as error:
            self.fail(httpx2.RemoteProtocolError(f"the response is not valid HTTP: {error}"))
        else:
            if not self._has_head and self._head_size > _MOST_HEAD:
                self.fail(httpx2.RemoteProtocolError(f"the response has more than {_MOST_HEAD:,} bytes of headers"))
        self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        """Complete a response that ends with the connection. Fail any other incomplete response."""
        if self._has_head and self._ends_with_connection and exc is None:
            self.is_complete = True
        if not self.is_complete and self.failure is None:
            if exc is not None:
                self.failure = httpx2.ReadError(str(exc))
                self.failure.__cause__ = exc
            elif self._has_head:
                self.failure = httpx2.RemoteProtocolError(
                    "peer closed connection without sending complete message body"
                )
            else:
                self.failure = httpx2.RemoteProtocolError("Server disconnected without sending a response.")
        self._keeps_alive = False
        self._wake()

    def pause_writing(self) -> None:
        self._is_writable = False

    def resume_writing(self) -> None:
        self._is_writable = True
        self._wake()

    def on_message_begin(self) -> None:
        # httptools reports the exception as a parser error.
        if self.is_complete:
            raise ValueError("the server sent more than its response")

    def on_status(self, reason: bytes) -> None:
        self.reason += reason

    def on_header(self, name: bytes, value: bytes) -> None:
        """Store a header. Ignore trailers.

        Raises:
            ValueError: The value has a line break or a null character (RFC 9110, 5.5).
        """
        if b"\r" in value or b"\n" in value or b"\0" in value:
            raise ValueError("a header has a line break or a null character")
        if not self._has_head:
            self.headers.append((name, value.strip(b" \t")))

    def on_headers_complete(self) -> None:
        """Make the response head available, unless the response is informational (RFC 9110, 15.2)."""
        status = self._parser.get_status_code()
        if status < HTTPStatus.OK:
            self.headers, self.reason = [], b""
            return
        self.status = status
        self.version = self._parser.get_http_version().encode()
        self._keeps_alive = self._parser.should_keep_alive()
        names = {name.lower() for name, _ in self.headers}
        lengths = names & {b"content-length", b"transfer-encoding"}
        self._ends_with_connection = not lengths
        # A proxy may have seen a different end of the response (RFC 9112, 6.3), or a body may follow (RFC 9110, 8.6).
        if len(lengths) > 1 or (lengths and status == HTTPStatus.NO_CONTENT):
            self._keeps_alive = False
        self._has_head = True
        if not self._has_body:  # the parser still expects a body, so that the connection cannot be reused
            self.is_complete, self._keeps_alive = True, False

    def on_body(self, data: bytes) -> None:
        self._pieces.append(data)
        self._buffered += len(data)
        if self._buffered > _MOST_BUFFERED and not self._is_paused and not self._transport.is_closing():
            self._is_paused = True
            self._transport.pause_reading()

    def on_message_complete(self) -> None:
        self.is_complete = self._has_head

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


class Body(httpx2.AsyncByteStream):
    """The body of a response, as it arrives."""

    def __init__(self, transport: DirectTransport, connection: _Connection) -> None:
        """Create the body of the response that a connection receives. `aclose` releases the connection."""
        self.connection = connection
        self._transport = transport
        self._is_closed = False

    @property
    def headers(self) -> dict[str, str]:
        """The response headers by lower-case name."""
        headers: dict[str, str] = {}
        for raw_name, raw_value in self.connection.headers:
            name, value = raw_name.decode("latin-1").lower(), _decode(raw_value)
            headers[name] = f"{headers[name]}, {value}" if name in headers else value
        return headers

    async def read(self) -> bytes:
        """Return more of the body, or empty bytes at its end. Raises httpx2.TransportError."""
        connection = self.connection
        while not self._is_closed:
            if data := connection.pop():
                return data
            if connection.is_complete:
                break
            if connection.failure is not None:
                raise connection.failure
            await connection.receive()
        return b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Yield the body piece by piece."""
        while data := await self.read():
            yield data

    async def aclose(self) -> None:
        """Release the connection to the pool."""
        if not self._is_closed:
            self._is_closed = True
            self._transport.release(self.connection)


def _decode(value: bytes) -> str:
    # httpx2 decodes headers in the same way.
    try:
        return value.decode()
    except UnicodeDecodeError:
        return value.decode("latin-1")


def _find_system_error(error: OSError) -> OSError:
    """Return the first of several system errors that asyncio combined into one error by joining their messages."""
    match = re.search(r"\[Errno (\d+)\]", str(error))
    if error.errno is not None or match is None:
        return error
    return OSError(int(match[1]), os.strerror(int(match[1])))


async def _split_body(request: httpx2.Request) -> AsyncIterator[bytes]:
    """Yield a streamed body piece by piece, as chunks if the length is unknown (RFC 9112, 7.1)."""
    is_chunked = "transfer-encoding" in request.headers
    async for piece in request.stream:  # type: ignore[union-attr]  # an asynchronous client accepts only such streams
        yield b"%x\r\n%b\r\n" % (len(piece), piece) if is_chunked and piece else piece
    if is_chunked:
        yield b"0\r\n\r\n"


def _write_head(method: str, url: httpx2.URL, headers: Sequence[tuple[bytes, bytes]]) -> bytes:
    lines = [b"%b %b HTTP/1.1" % (method.encode("ascii"), url.raw_path)]
    lines += [b"%b: %b" % header for header in headers]
    head = b"\r\n".join([*lines, b"", b""])
    if not head.count(b"\n") == head.count(b"\r") == len(headers) + 2 or b"\0" in head:
        raise httpx2.LocalProtocolError("a header has a line break or a null character")
    return head
