"""Each connection's subscriptions (MCP 2025-11-25 and earlier), and a log of list changes."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ...mcp.errors import INVALID_PARAMS, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...mcp.vocabulary import LogLevel

SUBSCRIPTIONS: Final = 1000
"""The maximum number of resources that one connection can subscribe to."""

CHARACTERS: Final = 256 * 1024
"""The maximum total length of one connection's subscribed URIs, in characters."""


Kind: TypeAlias = Literal["tools", "resources", "prompts"]
"""The kind of primitive that a change notification concerns; resource templates count as resources."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change to a list or, if `uri` is set, to one resource."""

    kind: Kind
    uri: str | None = None


Publish: TypeAlias = Callable[[Change], Awaitable[None]]


@dataclass(slots=True)
class ClientSubscriptions:
    """One connection's resource subscriptions and log level.

    Attributes:
        level: The minimum level of log messages to send.
        uris: The URIs of the subscribed resources.
        since: The number of list changes before the handshake; `None` if unknown.
    """

    level: LogLevel = "info"
    uris: set[str] = field(default_factory=set[str])
    since: int | None = None

    def subscribe(self, uri: str) -> None:
        """Subscribe to a resource (MCP 2025-11-25, server/resources, "Subscriptions").

        Raises:
            ProtocolError: The connection has too many subscriptions, or the URIs are too long in total.
        """
        check_subscriptions([*self.uris, uri])
        self.uris.add(uri)


def check_subscriptions(uris: Sequence[str]) -> None:
    """Check the number and the total length of subscribed URIs.

    Raises:
        ProtocolError: There are too many URIs, or they are too long in total.
    """
    if len(uris) > SUBSCRIPTIONS:
        raise ProtocolError(INVALID_PARAMS, f"More than {SUBSCRIPTIONS} subscriptions")
    if sum(map(len, uris)) > CHARACTERS:
        text = f"The subscribed URIs have more than {CHARACTERS} characters in total"
        raise ProtocolError(INVALID_PARAMS, text)


@dataclass(slots=True)
class ChangeLog:
    """Counts list changes, and records the number of each kind's last change."""

    count: int = 0
    last: dict[Kind, int] = field(default_factory=dict["Kind", int])

    def add(self, kind: Kind) -> None:
        """Count a change to the list of a kind."""
        self.count += 1
        self.last[kind] = self.count
