"""Marks of request states that have come back: an answer fits one call (MCP 2026-07-28, "Multi Round-Trip Requests").

The seal of a state keeps it from being changed, and bounds how long it holds; it does not keep it from being sent
again.
"""

from __future__ import annotations

import secrets
import time
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable

MAX_NONCES: Final = 16_000
"""States of one principal that are remembered; a hundred bytes each."""


def make_nonce() -> str:
    """Return a mark for a new state. Later marks sort behind earlier ones."""
    return f"{time.time_ns():020}.{secrets.token_hex(8)}"


class Nonces:
    """The marks of one principal that this process has seen.

    If there are too many, the older half of them is forgotten, and every state that was made before those is refused,
    so that none is ever taken twice.
    """

    def __init__(self, clock: Callable[[], float], most: int = MAX_NONCES) -> None:
        """Remember at most so many; `clock` tells the time in seconds."""
        self._clock = clock
        self._most = most
        self._ends: dict[str, float] = {}
        self._oldest = ""

    def use_nonce(self, nonce: str, seconds: float) -> bool:
        """Return whether a mark is new, and remember it for `seconds`."""
        self.expire()
        if len(self._ends) >= self._most:
            self._forget_half()
        if nonce in self._ends or nonce <= self._oldest:
            return False
        self._ends[nonce] = self._clock() + seconds
        return True

    def expire(self) -> None:
        """Forget expired nonces."""
        now = self._clock()
        # All are remembered for the same time, so that the first one ends first.
        while self._ends and self._ends[first := next(iter(self._ends))] <= now:
            del self._ends[first]

    def __len__(self) -> int:
        """Return the number of stored marks."""
        return len(self._ends)

    def _forget_half(self) -> None:
        older = sorted(self._ends)[: (len(self._ends) + 1) // 2]
        self._oldest = older[-1]
        for nonce in older:
            del self._ends[nonce]
