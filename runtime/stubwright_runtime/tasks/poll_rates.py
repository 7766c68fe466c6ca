"""Limits on how often one principal may ask about tasks, in one process.

Calls that make tasks have limits of their own.
"""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Final

PER_SECOND: Final = 100
BURST: Final = 1000
"""The burst of requests that a principal may send after a pause."""

_PRINCIPALS: Final = 10_000
"""Principals that are remembered; a forgotten one begins again."""


class PollRates:
    """The requests of each principal."""

    def __init__(self) -> None:
        """Start without requests."""
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def count(self, principal: str) -> float:
        """Count a request, and return the seconds until the next one may be made; 0 if this one may."""
        now = time.monotonic()
        # Moved to the end, so that the least recent principal comes first.
        left, since = self._left.pop(principal, (float(BURST), now))
        left = min(float(BURST), left + (now - since) * PER_SECOND)
        is_let_in = left >= 1
        self._left[principal] = (left - 1 if is_let_in else left, now)
        if len(self._left) > _PRINCIPALS:
            self._left.popitem(last=False)
        return 0.0 if is_let_in else (1 - left) / PER_SECOND
