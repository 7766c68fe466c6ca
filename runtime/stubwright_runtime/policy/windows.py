"""Sliding windows of rate limits in memory."""

from __future__ import annotations

import time
from collections import OrderedDict, defaultdict, deque


class Windows:
    """Rate limit windows of one process.

    A window stores at most as many hit times as its limit. Windows of the same length are ordered by their last hits,
    so that expired windows come first.
    """

    def __init__(self) -> None:
        self._hits: defaultdict[int, OrderedDict[str, deque[float]]] = defaultdict(OrderedDict)

    async def hit(self, key: str, limit: int, seconds: int) -> float:
        """Count a hit and return 0 if the window has room. Otherwise, return the seconds until it has room.

        Args:
            key: The key of the window.
            limit: The maximum number of hits in a window.
            seconds: The length of the window in seconds.
        """
        now, window = time.monotonic(), self._hits[seconds]
        while window and next(iter(window.values()))[-1] <= now - seconds:
            window.popitem(last=False)
        hits = window.get(key) or deque()
        while hits and hits[0] <= now - seconds:
            hits.popleft()
        if len(hits) >= limit:
            return hits[0] + seconds - now
        hits.append(now)
        window[key] = hits
        window.move_to_end(key)
        return 0.0

    def __len__(self) -> int:
        """Return the number of windows."""
        return sum(map(len, self._hits.values()))
