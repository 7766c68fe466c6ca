"""Moving windows of rate limits, in the memory of one process, for the library `limits`.

Takes hits; keeps when the last of each key were. The library's own storage for a process starts a thread for each key
at each hit to look for what is over; here the keys of one window stand in the order of their last hits, so that what is
over stands first.
"""

from __future__ import annotations

import time
from collections import OrderedDict, defaultdict, deque

from limits.aio.storage import MovingWindowSupport, Storage


class MovingWindows(Storage, MovingWindowSupport):
    """A storage of `limits` that has moving windows and nothing else."""

    STORAGE_SCHEME = None

    @property
    def base_exceptions(self) -> type[Exception]:
        """What the library would wrap: nothing."""
        return OSError

    async def get(self, key: str) -> int:
        """Refuse to read a counter: there are no counters here."""
        raise NotImplementedError

    async def incr(self, key: str, expiry: int, amount: int = 1) -> int:
        """Refuse to add to a counter: there are no counters here."""
        raise NotImplementedError

    async def get_expiry(self, key: str) -> float:
        """Refuse to say when a counter ends: there are no counters here."""
        raise NotImplementedError

    async def check(self) -> bool:
        """Refuse to check whether the storage can be reached: the store does."""
        raise NotImplementedError

    async def reset(self) -> int | None:
        """Refuse to forget everything, which is not needed."""
        raise NotImplementedError

    async def clear(self, key: str) -> None:
        """Refuse to forget a key, which is not needed."""
        raise NotImplementedError


class Windows(MovingWindows):
    """The windows of one process.

    What it keeps are the times of the hits in the window, and of no others: at most the limit's number for each key.
    """

    def __init__(self) -> None:
        """Keep nothing so far."""
        super().__init__()
        self._hits: defaultdict[int, OrderedDict[str, deque[float]]] = defaultdict(OrderedDict)

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count `amount` hits in the window that ends now if they fit, and tell whether they do."""
        now, window = time.monotonic(), self._hits[expiry]
        self._forget(window, now - expiry)
        hits = window.get(key) or deque()
        while hits and hits[0] <= now - expiry:
            hits.popleft()
        if len(hits) + amount > limit:
            return False
        hits.extend([now] * amount)
        window[key] = hits
        window.move_to_end(key)
        return True

    async def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """Return when the oldest hit in the window was, in seconds since 1970, and the number of hits."""
        now = time.monotonic()
        hits = [hit for hit in self._hits[expiry].get(key, ()) if hit > now - expiry]
        return time.time() - (now - hits[0] if hits else 0), len(hits)

    async def reset(self) -> int | None:
        """Forget everything; gives the number of keys."""
        number = sum(map(len, self._hits.values()))
        self._hits.clear()
        return number

    async def clear(self, key: str) -> None:
        """Forget a key."""
        for window in self._hits.values():
            window.pop(key, None)

    def __len__(self) -> int:
        """Return the number of keys."""
        return sum(map(len, self._hits.values()))

    @staticmethod
    def _forget(window: OrderedDict[str, deque[float]], before: float) -> None:
        """Leave out the keys whose last hit is over."""
        while window and next(iter(window.values()))[-1] <= before:
            window.popitem(last=False)
