"""Limits each principal's task request rate, per process."""

from __future__ import annotations

import time
from collections import OrderedDict
from typing import Final

PER_SECOND: Final = 100
BURST: Final = 1000
"""A principal's maximum burst of requests."""

_PRINCIPALS: Final = 10_000
"""The maximum number of principals to track."""


class PollRates:
    """A token bucket for each principal."""

    def __init__(self) -> None:
        """Start with a full bucket for each principal."""
        self._left: OrderedDict[str, tuple[float, float]] = OrderedDict()

    def count(self, principal: str) -> float:
        """Count a request and return 0, or the seconds to wait if it exceeds the limit."""
        now = time.monotonic()
        # Insert at the end so that the least recent principal comes first.
        left, since = self._left.pop(principal, (float(BURST), now))
        left = min(float(BURST), left + (now - since) * PER_SECOND)
        is_let_in = left >= 1
        self._left[principal] = (left - 1 if is_let_in else left, now)
        if len(self._left) > _PRINCIPALS:
            self._left.popitem(last=False)
        return 0.0 if is_let_in else (1 - left) / PER_SECOND
