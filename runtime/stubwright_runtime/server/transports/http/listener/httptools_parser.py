"""HTTP connections parsed by httptools, which is written in C (extra `server`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import httptools
from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .connections import Connection
from .framing import check_framing
from .targets import resolve_target

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send
    from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

    from .connections import Connections

_HEAD: Final = 16 * 1024
"""The maximum head size in bytes, as in h11; httptools itself has no limit."""

_PIECE: Final = 4 * 1024
"""The number of bytes to parse at a time; small, to limit the pipelined requests in memory."""


class _Parser:
    """A parser that ignores `Upgrade` headers, and parses the request body as HTTP (RFC 9110, 7.8).

    httptools cannot be configured to do so: it treats the bytes after a head with `Upgrade` as another protocol.
    """

    def __init__(self, connection: HttptoolsConnection) -> None:
        self._connection = connection
        self._parser = self._make_parser()
        self._unparsed = b""

    def feed_data(self, data: bytes) -> None:
        """Parse incoming bytes, or store them while a pipelined request is waiting.

        Raises:
            httptools.HttpParserError: The bytes are not valid HTTP.
            httptools.HttpParserUpgrade: The bytes follow a CONNECT request.
        """
        rest, self._unparsed = memoryview(self._unparsed + data), b""
        for start in range(0, len(rest), _PIECE):
            if self._connection.pipeline:
                self._unparsed = bytes(rest[start:])
                break
            self._feed_piece(rest[start : start + _PIECE])

    @property
    def is_behind(self) -> bool:
        """True if unparsed bytes wait until a pipelined request has been answered."""
        return bool(self._unparsed)

    def _feed_piece(self, rest: memoryview) -> None:
        while True:
            try:
                self._parser.feed_data(rest)
            except httptools.HttpParserUpgrade as upgrade:
                head = self._connection.take_head()
                if not head:
                    raise
                rest = rest[upgrade.args[0] :]
                self._parser = self._make_parser()
                self._parser.feed_data(head)
            else:
                return

    def get_http_version(self) -> str:
        return str(self._parser.get_http_version())

    def get_method(self) -> bytes:
        return bytes(self._parser.get_method())

    def should_keep_alive(self) -> bool:
        return bool(self._parser.should_keep_alive())

    def should_upgrade(self) -> bool:
        """Return whether httptools treats the bytes after the head as another protocol."""
        return bool(self._parser.should_upgrade())

    def _make_parser(self) -> Any:
        parser = httptools.HttpRequestParser(self._connection)
        parser.set_dangerous_leniencies(lenient_data_after_close=True)  # uvicorn sets this attribute
        return parser


class _UnchunkedApp:
    """An ASGI wrapper for HTTP/1.0 requests, because HTTP/1.0 clients do not support chunked encoding (RFC 9112, 7.1).

    A response without a Content-Length ends when the connection closes.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app
        self.cycle: RequestResponseCycle | None = None

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_framed = False

        async def send_unframed(message: Message) -> None:
            nonlocal is_framed
            if message["type"] == "http.response.start":
                is_framed = any(name.lower() == b"content-length" for name, _ in message["headers"])
            if self.cycle is not None and not is_framed:
                self.cycle.chunked_encoding = False
                self.cycle.expected_content_length = len(message.get("body", b""))
            await send(message)

        await self._app(scope, receive, send_unframed)


class HttptoolsConnection(Connection, HttpToolsProtocol):  # type: ignore[misc]
    """A connection parsed by httptools."""

    def __init__(self, connections: Connections, **options: Any) -> None:
        """Create a connection; uvicorn passes the options."""
        super().__init__(connections, **options)
        self.parser: Any = _Parser(self)
        self._is_in_head = False
        self._is_in_body = False
        self._unfinished = 0
        self._head = b""
        """The last head without its `Upgrade` header, which must be parsed again; empty if none."""

    def take_head(self) -> bytes:
        """Return the head that must be parsed again, once; empty if none."""
        head, self._head = self._head, b""
        return head

    def data_received(self, data: bytes) -> None:
        """Parse incoming bytes; respond with 400 if the head is too large."""
        if self._is_in_head:
            self._unfinished += len(data)
        super().data_received(data)
        if self._is_in_head and self._unfinished > _HEAD and not self.transport.is_closing():
            self.send_400_response("Invalid HTTP request received.")

    def on_message_begin(self) -> None:
        """Start to count the bytes of a head."""
        self._is_in_head, self._unfinished = True, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Add a header, stripping whitespace around the value (RFC 9110, 5.5)."""
        super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        """Validate a complete head and start the request.

        httptools converts an exception to a parser error, which results in a 400 response.

        Raises:
            UnclearFramingError: The framing is ambiguous (RFC 9112, 6.3).
            UnclearHostError: The host is ambiguous (RFC 9112, 3.2).
        """
        self._is_in_head = False
        version = self.parser.get_http_version().encode()
        if self.parser.should_upgrade() and any(name == b"upgrade" for name, _ in self.headers):
            lines = [b"%b %b HTTP/%b" % (self.parser.get_method(), self.url, version)]
            lines += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
            self._head = b"\r\n".join([*lines, b"", b""])
            return
        check_framing(self.headers)
        self.url, self.headers[:] = resolve_target(self.url, version, self.headers)
        self._is_in_body = True
        if version >= b"1.1":
            super().on_headers_complete()
            return
        self.expect_100_continue = False  # RFC 9110, 10.1.1
        self.app = unframed = _UnchunkedApp(self.app)  # the connection closes after this request
        super().on_headers_complete()
        unframed.cycle = self.cycle

    def on_response_complete(self) -> None:
        """Start the next pipelined request, if any, and parse the waiting bytes."""
        super().on_response_complete()
        if self.parser.is_behind and not self.pipeline and not self.transport.is_closing():
            self.feed(b"")

    def on_message_complete(self) -> None:
        """Complete a request, unless its head must be parsed again."""
        self._is_in_body = False
        if not self._head:
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Reject a request and close the connection.

        The 400 response is omitted if the client would match it to another request.
        """
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or (cycle.response_complete and not self._is_in_body):
            super().send_400_response(msg)
        elif not self._is_in_body:
            cycle.keep_alive = False  # close after the responses to earlier requests
        elif cycle.response_started or self.pipeline:
            self.transport.close()
        else:
            super().send_400_response(msg)
