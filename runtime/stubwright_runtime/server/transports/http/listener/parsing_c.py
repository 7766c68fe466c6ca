"""HTTP parsed in C, by httptools, which the extra `server` brings."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from .connections import Connection
from .targets import resolve_target

if TYPE_CHECKING:
    from .connections import Connections

_HEAD: Final = 16 * 1024
"""Bytes of a head that have come without its end, as h11 has it; httptools has no bound of its own."""


class HttptoolsConnection(Connection, HttpToolsProtocol):  # type: ignore[misc]
    """One connection."""

    def __init__(self, connections: Connections, **options: Any) -> None:
        """Take all connections of the server, and uvicorn's own options."""
        super().__init__(connections, **options)
        self._is_in_head = False
        self._unfinished = 0

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
        """Note that a head has ended, and for which host it is; one that leaves this open is refused (RFC 9112, 3.2).

        Raises:
            UnclearHostError: It does; httptools passes it on as an error of the request, which is answered 400.
        """
        self._is_in_head = False
        parser: Any = self.parser  # which calls this
        version = parser.get_http_version().encode()
        self.url, self.headers[:] = resolve_target(self.url, version, self.headers)
        super().on_headers_complete()
