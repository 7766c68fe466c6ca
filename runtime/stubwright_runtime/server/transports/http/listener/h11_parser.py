"""HTTP connections parsed by h11, uvicorn's pure-Python dependency."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .connections import Connection
from .framing import ChunkedBody, UnclearFramingError, check_head
from .targets import UnclearHostError, resolve_target

if TYPE_CHECKING:
    from .connections import Connections


class _Parser(h11.Connection):
    """An h11 parser that rejects ambiguous framing and resolves absolute targets to paths.

    By itself, h11 accepts bare LF and folded lines, merges equal Content-Length headers, and ignores Content-Length if
    there is a Transfer-Encoding.
    """

    def __init__(self) -> None:
        super().__init__(h11.SERVER)
        self._body: ChunkedBody | None = None
        self._error: UnclearFramingError | None = None

    def receive_data(self, data: bytes) -> None:
        super().receive_data(data)
        self._check_body(data)

    def next_event(self) -> Any:
        """Return the next part of a request.

        Raises:
            h11.RemoteProtocolError: The request is not valid HTTP, or its host or framing is ambiguous.
        """
        try:
            if self.their_state is h11.IDLE:
                check_head(self.trailing_data[0])
            event = super().next_event()
            if isinstance(event, h11.Request):
                is_chunked = any(name == b"transfer-encoding" for name, _ in event.headers)
                self._body = ChunkedBody() if is_chunked else None
                self._check_body(self.trailing_data[0])
                event = _resolve(event)
            if self._error is not None:
                raise self._error
        except (UnclearFramingError, UnclearHostError) as error:
            raise h11.RemoteProtocolError(str(error)) from None
        return event

    def _check_body(self, data: bytes) -> None:
        if self._body is not None and self._error is None:
            try:
                self._body.check(data)
            except UnclearFramingError as error:
                self._error = error


def _resolve(request: h11.Request) -> h11.Request:
    if request.target.startswith(b"/"):  # h11 ensures that there is exactly one Host
        return request
    target, headers = resolve_target(request.target, request.http_version, [*request.headers])
    return h11.Request(method=request.method, headers=headers, target=target, http_version=request.http_version)


class H11Connection(Connection, H11Protocol):  # type: ignore[misc]
    """A connection parsed by h11."""

    def __init__(self, connections: Connections, **options: Any) -> None:
        """Create a connection; uvicorn passes the options."""
        super().__init__(connections, **options)
        self.conn: h11.Connection = _Parser()

    def send_400_response(self, msg: str) -> None:
        """Send 400 unless a response has started, and close the connection."""
        if self.conn.our_state in (h11.IDLE, h11.SEND_RESPONSE):
            super().send_400_response(msg)
        else:
            self.transport.close()
