"""Keys for the server's own objects in ASGI scopes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

POST: Final = "stubwright.post"
"""The pending `Post` that sends its stream over this connection."""

WIRE: Final = "stubwright.wire"
"""A request's `RawConnection`, if the server's own listener received the request."""


class RawConnection(Protocol):
    """A request's connection, with the operations that ASGI lacks."""

    def has_whole_body(self, scope: Mapping[str, Any]) -> bool:
        """Return whether the request body has arrived completely."""
        ...

    def hold_head(self) -> None:
        """Delay the response head, so that it is sent together with the body, which must follow immediately."""
        ...
