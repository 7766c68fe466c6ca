"""The wants of connections with a handshake, up to 2025-11-25, and the log of changes since it.

Pure data, shared by all transports. From 2026-07-28 there are no connections: each request describes what it wants.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from ...mcp.errors import INVALID_PARAMS, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...mcp.vocabulary import LogLevel

SUBSCRIPTIONS: Final = 1000
"""The maximum number of resources that one connection may subscribe to."""

CHARACTERS: Final = 256 * 1024
"""The maximum total length of their URIs, in characters."""


Kind: TypeAlias = Literal["tools", "resources", "prompts"]
"""A kind of entries that change together: resource templates count as resources."""


@dataclass(frozen=True, slots=True)
class Change:
    """A change to tell clients: of a list, or, with `uri`, of one resource."""

    kind: Kind
    uri: str | None = None


Publish: TypeAlias = Callable[[Change], Awaitable[None]]


@dataclass(slots=True)
class ClientSubscriptions:
    """The log messages and changes that one connection subscribes to.

    Attributes:
        level: The least level of log messages.
        uris: The resources with notifications of changes.
        is_told: True if changes are sent.
        since: The number of changes before its handshake.
    """

    level: LogLevel = "info"
    uris: set[str] = field(default_factory=set[str])
    is_told: bool = False
    since: int | None = None

    def subscribe(self, uri: str) -> None:
        """Subscribe to a resource (MCP 2025-11-25, server/resources, "Subscriptions").

        Raises:
            ProtocolError: It has too many subscriptions, or their URIs are too long.
        """
        check_subscriptions([*self.uris, uri])
        self.uris.add(uri)


def check_subscriptions(uris: Sequence[str]) -> None:
    """Refuse more subscriptions than one client may have.

    Raises:
        ProtocolError: There are too many, or their URIs are too long.
    """
    if len(uris) > SUBSCRIPTIONS:
        raise ProtocolError(INVALID_PARAMS, f"More than {SUBSCRIPTIONS} subscriptions")
    if sum(map(len, uris)) > CHARACTERS:
        text = f"The URIs of the subscriptions have more than {CHARACTERS} characters together"
        raise ProtocolError(INVALID_PARAMS, text)


@dataclass(slots=True)
class ChangeLog:
    """The number of changes of lists, and the number of the last change of each kind."""

    count: int = 0
    last: dict[Kind, int] = field(default_factory=dict["Kind", int])

    def add(self, kind: Kind) -> None:
        """Note a change."""
        self.count += 1
        self.last[kind] = self.count
