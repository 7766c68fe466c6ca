"""HTTP parsed in C, by httptools, which the extra `server` brings."""

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
"""Bytes of a head that have come without its end, as h11 has it; httptools has no bound of its own."""

_PIECE: Final = 4 * 1024
"""Bytes that are parsed at a time, so that few requests of a client that does not wait for answers become objects."""


class _Parser:
    """A parser that ignores `Upgrade`: such a request is an ordinary one, with its body (RFC 9110, 7.8).

    httptools has no option for this: it takes all bytes after the head of such a request for another protocol.
    """

    def __init__(self, connection: HttptoolsConnection) -> None:
        self._connection = connection
        self._parser = self._make_parser()
        self._unparsed = b""

    def feed_data(self, data: bytes) -> None:
        """Parse incoming bytes, but none while another request waits for its turn.

        Raises:
            httptools.HttpParserError: They are not valid HTTP.
            httptools.HttpParserUpgrade: They follow a CONNECT request.
        """
        rest, self._unparsed = memoryview(self._unparsed + data), b""
        for start in range(0, len(rest), _PIECE):
            if self._connection.pipeline:
                self._unparsed = bytes(rest[start:])
                break
            self._feed_piece(rest[start : start + _PIECE])

    @property
    def is_behind(self) -> bool:
        """True if bytes wait until another request is answered."""
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
        """Return the version of the request, such as `1.1`."""
        return str(self._parser.get_http_version())

    def get_method(self) -> bytes:
        """Return the method of the request."""
        return bytes(self._parser.get_method())

    def should_keep_alive(self) -> bool:
        """Return whether the connection may be used again after the request."""
        return bool(self._parser.should_keep_alive())

    def should_upgrade(self) -> bool:
        """Return whether the parser takes the bytes after the head for another protocol."""
        return bool(self._parser.should_upgrade())

    def _make_parser(self) -> Any:
        parser = httptools.HttpRequestParser(self._connection)
        parser.set_dangerous_leniencies(lenient_data_after_close=True)  # as uvicorn sets it
        return parser


class _UnchunkedApp:
    """The application (ASGI) for a request of HTTP/1.0, whose client does not know chunks (RFC 9112, 7.1).

    A response of unknown length ends with its connection.
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
    """One connection."""

    def __init__(self, connections: Connections, **options: Any) -> None:
        """Take all connections of the server, and uvicorn's own options."""
        super().__init__(connections, **options)
        self.parser: Any = _Parser(self)
        self._is_in_head = False
        self._is_in_body = False
        self._unfinished = 0
        self._head = b""
        """The head of a request, without the header `Upgrade`, until it is parsed again."""

    def take_head(self) -> bytes:
        """Return the head that is to be parsed instead of the last one; empty if there is none."""
        head, self._head = self._head, b""
        return head

    def data_received(self, data: bytes) -> None:
        """Parse incoming bytes; a head without an end is refused."""
        if self._is_in_head:
            self._unfinished += len(data)
        super().data_received(data)
        if self._is_in_head and self._unfinished > _HEAD and not self.transport.is_closing():
            self.send_400_response("Invalid HTTP request received.")

    def on_message_begin(self) -> None:
        """Note that a head begins."""
        self._is_in_head, self._unfinished = True, 0
        super().on_message_begin()

    def on_header(self, name: bytes, value: bytes) -> None:
        """Take a header, without the white space around its value, which is not part of it (RFC 9110, 5.5)."""
        super().on_header(name, value.strip(b" \t"))

    def on_headers_complete(self) -> None:
        """Note that a head has ended; a request whose host or end is unclear is refused (RFC 9112, 3.2 and 6.3).

        httptools reports an exception as an error of the request, which is answered 400.

        Raises:
            UnclearFramingError: The end is unclear.
            UnclearHostError: The host is unclear.
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
        self.app = unframed = _UnchunkedApp(self.app)  # the connection ends with this request
        super().on_headers_complete()
        unframed.cycle = self.cycle

    def on_response_complete(self) -> None:
        """Start the next request, and parse what arrived after it."""
        super().on_response_complete()
        if self.parser.is_behind and not self.pipeline and not self.transport.is_closing():
            self.feed(b"")

    def on_message_complete(self) -> None:
        """Note that a request has ended, unless it is parsed again."""
        self._is_in_body = False
        if not self._head:
            super().on_message_complete()

    def send_400_response(self, msg: str) -> None:
        """Refuse a request and close; without an answer if the client would match it to another request."""
        cycle: RequestResponseCycle | None = self.cycle
        if cycle is None or (cycle.response_complete and not self._is_in_body):
            super().send_400_response(msg)
        elif not self._is_in_body:
            cycle.keep_alive = False  # after the answers to earlier requests
        elif cycle.response_started or self.pipeline:
            self.transport.close()
        else:
            super().send_400_response(msg)
