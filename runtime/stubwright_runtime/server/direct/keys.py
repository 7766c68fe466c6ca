"""Where the scope of a request over HTTP holds what the server's own parts tell each other of it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, Protocol

if TYPE_CHECKING:
    from collections.abc import Mapping

RUN: Final = "stubwright.run"
"""The run of a request that is under way, and whose stream gets this connection."""

WIRE: Final = "stubwright.wire"
"""The `Wire` of a request that has come to the server's own listener."""


class Wire(Protocol):
    """What a connection knows of a request, beside what ASGI says."""

    def has_all_of(self, scope: Mapping[str, Any]) -> bool:
        """Tell whether the request has come with all of its body, so that nothing is to be waited for."""
        ...

    def hold_head(self) -> None:
        """Send the head of the answer together with its body, which follows at once."""
        ...
