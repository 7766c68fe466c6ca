"""Keys of the server's own objects in ASGI scopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

POST: Final = "stubwright.post"
"""The pending `Post` whose stream is sent over this connection."""

WIRE: Final = "stubwright.wire"
"""The `RawConnection` of a request, if the server's own listener received it."""


class RawConnection(Protocol):
    """Access to the connection of a request, beyond ASGI."""

    def has_whole_body(self, scope: Mapping[str, Any]) -> bool:
        """Return whether the whole body of the request has arrived."""
        ...

    def hold_head(self) -> None:
        """Delay the head of the response until its body, which follows immediately."""
        ...
