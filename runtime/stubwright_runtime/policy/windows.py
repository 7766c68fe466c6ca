"""Moving windows of rate limits, in the memory of one process."""

from __future__ import annotations

import time
from collections import OrderedDict, defaultdict, deque


class Windows:
    """The windows of one process.

    It keeps only the times of the hits in the window: at most the limit's number for each key. The keys of one length
    are in the order of their last hits, so that expired ones stand first.
    """

    def __init__(self) -> None:
        """Keep nothing so far."""
        self._hits: defaultdict[int, OrderedDict[str, deque[float]]] = defaultdict(OrderedDict)

    async def hit(self, key: str, limit: int, seconds: int) -> float:
        """Count a hit in the window that ends now; return 0, or the seconds until it would fit.

        Args:
            key: The key that is hit.
            limit: The maximum number of hits in a window.
            seconds: The length of a window.
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
        """Return the number of keys."""
        return sum(map(len, self._hits.values()))
