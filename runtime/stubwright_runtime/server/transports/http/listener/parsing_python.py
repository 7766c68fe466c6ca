"""HTTP parsed in Python, by h11, which comes with uvicorn."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import h11
from uvicorn.protocols.http.h11_impl import H11Protocol

from .connections import Connection
from .targets import UnclearHostError, resolve_target

if TYPE_CHECKING:
    from .connections import Connections


class _Parser(h11.Connection):
    """The parser, which gives requests as uvicorn expects them: a target is a path."""

    def next_event(self) -> Any:
        """Return the next part of a request.

        Raises:
            h11.RemoteProtocolError: It is no valid HTTP, or leaves open which host it is for.
        """
        event = super().next_event()
        if not isinstance(event, h11.Request) or event.target.startswith(b"/"):  # h11 sees to it that there is one Host
            return event
        try:
            target, headers = resolve_target(event.target, event.http_version, [*event.headers])
        except UnclearHostError as error:
            raise h11.RemoteProtocolError(str(error)) from None
        return h11.Request(method=event.method, headers=headers, target=target, http_version=event.http_version)


class H11Connection(Connection, H11Protocol):  # type: ignore[misc]
    """One connection."""

    def __init__(self, connections: Connections, **options: Any) -> None:
        """Take all connections of the server, and uvicorn's own options."""
        super().__init__(connections, **options)
        self.conn: h11.Connection = _Parser(h11.SERVER)
