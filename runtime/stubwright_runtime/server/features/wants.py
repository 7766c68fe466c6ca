"""What is known of the connections of the handshake's era, up to 2025-11-25, and what changed since they shook hands.

Pure data, which all ways of answering share. From 2026-07-28 there are no connections: each request says what it wants.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from ..core.context import LogLevel
    from ..core.lists import Kind


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


@dataclass(slots=True)
class ChangeLog:
    """How often lists changed, and which change was the last of each kind."""

    count: int = 0
    last: dict[Kind, int] = field(default_factory=dict["Kind", int])

    def add(self, kind: Kind) -> None:
        """Note a change."""
        self.count += 1
        self.last[kind] = self.count
