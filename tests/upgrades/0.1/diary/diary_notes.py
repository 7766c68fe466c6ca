"""What is written, and how loudly that is told."""

from __future__ import annotations

from diary_mcp._runtime.server.context import LOG_LEVELS, LogLevel

LEVELS: tuple[LogLevel, ...] = LOG_LEVELS


class Notes:
    """The entries, the oldest first."""

    def __init__(self) -> None:
        self.entries: list[str] = []

    def add(self, text: str) -> None:
        self.entries.append(text)
