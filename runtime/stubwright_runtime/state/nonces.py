"""Nonces that prevent request state replays (MCP 2026-07-28, "Multi Round-Trip Requests").

A sealed state cannot be modified and expires, but without a nonce, a client could send it twice.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_NONCES: Final = 16_000
"""The maximum number of nonces stored per principal, at a hundred bytes each."""


def make_nonce() -> str:
    """Return a new nonce. Nonces sort by time."""
    return f"{time.time_ns():020}.{secrets.token_hex(8)}"


class Nonces:
    """One principal's used nonces.

    If there are too many, the older half is removed, and any nonce older than the remaining ones counts as used.
    """

    def __init__(self, clock: Callable[[], float], most: int = MAX_NONCES) -> None:
        """Create an empty set with a maximum size and a clock that returns seconds."""
        self._clock = clock
        self._most = most
        self._ends: dict[str, float] = {}
        self._oldest = ""

    def use_nonce(self, nonce: str, seconds: float) -> bool:
        """Store a nonce for `seconds` and return whether it is new."""
        self.expire()
        if len(self._ends) >= self._most:
            self._forget_half()
        if nonce in self._ends or nonce <= self._oldest:
            return False
        self._ends[nonce] = self._clock() + seconds
        return True

    def expire(self) -> None:
        """Remove expired nonces."""
        now = self._clock()
        # All nonces have the same lifetime, so the first one expires first.
        while self._ends and self._ends[first := next(iter(self._ends))] <= now:
            del self._ends[first]

    def __len__(self) -> int:
        """Return the number of stored nonces."""
        return len(self._ends)

    def _forget_half(self) -> None:
        older = sorted(self._ends)[: (len(self._ends) + 1) // 2]
        self._oldest = older[-1]
        for nonce in older:
            del self._ends[nonce]
