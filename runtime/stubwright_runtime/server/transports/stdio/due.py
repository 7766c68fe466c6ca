"""The requests of a client that are not answered yet.

Takes ids as they come and go; tells when none is left.
"""

from __future__ import annotations

import asyncio


class Due:
    """The requests of one connection."""

    def __init__(self) -> None:
        """Begin without requests."""
        self._waiting: set[str] = set()
        self._changed = asyncio.Event()

    def add(self, request: str | int) -> None:
        """Note that a request has come."""
        self._waiting.add(repr(request))

    def remove(self, request: object) -> None:
        """Remove a request that is answered, or whose answer is not wanted any more."""
        self._waiting.discard(repr(request))
        self._changed.set()

    async def wait_for_all(self) -> None:
        """Wait until no answer is due any more."""
        while self._waiting:
            self._changed.clear()
            await self._changed.wait()
