"""Keys in the ASGI scope of a request for objects that the server's own parts share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

POST: Final = "stubwright.post"
"""The `Post` that is being answered; its stream gets this connection."""

WIRE: Final = "stubwright.wire"
"""The `RawConnection` of a request that came to the server's own listener."""


class RawConnection(Protocol):
    """The state of a request on its connection that ASGI does not tell."""

    def has_all_of(self, scope: Mapping[str, Any]) -> bool:
        """Return whether the whole body of the request has arrived."""
        ...

    def hold_head(self) -> None:
        """Send the head of the answer together with its body, which follows immediately."""
        ...
