"""What is known of the connections of the handshake's era, up to 2025-11-25, and what changed since they shook hands.

Pure data, which all ways of answering share. From 2026-07-28 there are no connections: each request says what it wants.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from ...mcp.errors import INVALID_PARAMS, ProtocolError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...mcp.vocabulary import LogLevel
    from ..core.lists import Kind

SUBSCRIPTIONS: Final = 1000
"""How many resources one connection may subscribe to."""

CHARACTERS: Final = 256 * 1024
"""How long their URIs may be together."""


@dataclass(slots=True)
class Wants:
    """What one connection wants to hear.

    Attributes:
        level: The least level of log messages.
        uris: The resources of whose changes it hears.
        is_told: Whether it hears of changes.
        since: How many changes there had been when it shook hands.
    """

    level: LogLevel = "info"
    uris: set[str] = field(default_factory=set[str])
    is_told: bool = False
    since: int | None = None

    def subscribe(self, uri: str) -> None:
        """Have it hear of changes of a resource, too (MCP 2025-11-25, server/resources, "Subscriptions").

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
    """How often lists changed, and which change was the last of each kind."""

    count: int = 0
    last: dict[Kind, int] = field(default_factory=dict["Kind", int])

    def add(self, kind: Kind) -> None:
        """Note a change."""
        self.count += 1
        self.last[kind] = self.count
