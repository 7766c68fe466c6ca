"""Keys for the server's own objects in ASGI scopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

POST: Final = "stubwright.post"
"""The pending `Post` whose stream is sent over this connection."""

WIRE: Final = "stubwright.wire"
"""A request's `RawConnection`, if the server's own listener received the request."""


class RawConnection(Protocol):
    """Access to a request's connection beyond ASGI."""

    def has_whole_body(self, scope: Mapping[str, Any]) -> bool:
        """Return whether the whole request body has arrived."""
        ...

    def hold_head(self) -> None:
        """Delay the response head until the body, which follows immediately."""
        ...
