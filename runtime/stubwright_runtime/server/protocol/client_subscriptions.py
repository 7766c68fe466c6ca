"""Connections' subscriptions (MCP 2025-11-25 and earlier), and the change log."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ...mcp.errors import INVALID_PARAMS, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...mcp.vocabulary import LogLevel

SUBSCRIPTIONS: Final = 1000
"""The maximum number of resources to which one connection may subscribe."""

CHARACTERS: Final = 256 * 1024
"""The maximum total length of their URIs, in characters."""


Kind: TypeAlias = Literal["tools", "resources", "prompts"]
"""A kind of entry in change notifications; resource templates count as resources."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change to a list or, if `uri` is set, to one resource."""

    kind: Kind
    uri: str | None = None


Publish: TypeAlias = Callable[[Change], Awaitable[None]]


@dataclass(slots=True)
class ClientSubscriptions:
    """One connection's subscriptions.

    Attributes:
        level: The minimum level of log messages.
        uris: The subscribed resources.
        since: The number of changes before the handshake.
    """

    level: LogLevel = "info"
    uris: set[str] = field(default_factory=set[str])
    since: int | None = None

    def subscribe(self, uri: str) -> None:
        """Subscribe to a resource (MCP 2025-11-25, server/resources, "Subscriptions").

        Raises:
            ProtocolError: There are too many subscriptions, or their URIs are too long.
        """
        check_subscriptions([*self.uris, uri])
        self.uris.add(uri)


def check_subscriptions(uris: Sequence[str]) -> None:
    """Check the limits on subscriptions.

    Raises:
        ProtocolError: There are too many, or their URIs are too long.
    """
    if len(uris) > SUBSCRIPTIONS:
        raise ProtocolError(INVALID_PARAMS, f"More than {SUBSCRIPTIONS} subscriptions")
    if sum(map(len, uris)) > CHARACTERS:
        text = f"The subscribed URIs have more than {CHARACTERS} characters in total"
        raise ProtocolError(INVALID_PARAMS, text)


@dataclass(slots=True)
class ChangeLog:
    """Counts list changes and records the number of the last change of each kind."""

    count: int = 0
    last: dict[Kind, int] = field(default_factory=dict["Kind", int])

    def add(self, kind: Kind) -> None:
        """Add a change to the log."""
        self.count += 1
        self.last[kind] = self.count
