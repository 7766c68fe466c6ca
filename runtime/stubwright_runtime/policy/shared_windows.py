"""Moving windows of rate limits in Redis, for the library `limits`.

Takes hits; keeps in Redis when the last of each key were, by Redis' own clock: those of the processes that share it
need not agree. (The library's own storage there counts by the caller's.)
"""

from __future__ import annotations

import hashlib
import importlib
import time
from typing import TYPE_CHECKING, Any, Final

from .windows import MovingWindows

if TYPE_CHECKING:
    from ..state.store import Store

_START: Final = """
local time = redis.call('TIME')
local now, window = time[1] * 1000000 + time[2], tonumber(ARGV[1])
"""

_ENTER: Final = f"""{_START}
local limit, amount = tonumber(ARGV[2]), tonumber(ARGV[3])
local newest = redis.call('LINDEX', KEYS[1], 0)
if newest and tonumber(newest) > now then
  for place, hit in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
    if tonumber(hit) > now then redis.call('LSET', KEYS[1], place - 1, string.format('%.0f', now)) end
  end
end
local oldest = redis.call('LINDEX', KEYS[1], -1)
while oldest and tonumber(oldest) < now - window do
  redis.call('RPOP', KEYS[1])
  oldest = redis.call('LINDEX', KEYS[1], -1)
end
if redis.call('LLEN', KEYS[1]) + amount > limit then return 0 end
for _ = 1, amount do redis.call('LPUSH', KEYS[1], string.format('%.0f', now)) end
redis.call('PEXPIRE', KEYS[1], math.ceil(window / 1000) + 1)
return 1
"""
"""Hits are a list of microseconds, the newest first, which the limit bounds. A clock that went back, as that of another
server to which Redis failed over may, leaves hits in the future: they count as made now."""

_LOOK: Final = f"""{_START}
local age, number = 0, 0
for _, hit in ipairs(redis.call('LRANGE', KEYS[1], 0, -1)) do
  if tonumber(hit) >= now - window then
    age, number = math.max(0, now - tonumber(hit)), number + 1
  end
end
return {{age, number}}
"""


class SharedWindows(MovingWindows):
    """A storage of `limits` for moving windows that many processes share."""

    def __init__(self, store: Store) -> None:
        """Say in whose Redis they are."""
        super().__init__()
        self._store = store
        redis: Any = importlib.import_module("redis.asyncio").Redis(connection_pool=store.pool)
        self._enter = redis.register_script(_ENTER)
        self._look = redis.register_script(_LOOK)

    async def acquire_entry(self, key: str, limit: int, expiry: int, amount: int = 1) -> bool:
        """Count `amount` hits in the window that ends now if they fit, and tell whether they do.

        Raises:
            StateLost: The store does not answer.
        """
        async with self._store.exchange(writes=True):
            return bool(await self._enter(keys=[self._name(key)], args=[expiry * 1_000_000, limit, amount]))

    async def get_moving_window(self, key: str, limit: int, expiry: int) -> tuple[float, int]:
        """Return when the oldest hit in the window was, in seconds since 1970 by our clock, and the number of hits.

        Raises:
            StateLost: The store does not answer.
        """
        async with self._store.exchange(writes=False):
            age, number = await self._look(keys=[self._name(key)], args=[expiry * 1_000_000])
        return time.time() - age / 1_000_000, number

    def _name(self, key: str) -> str:
        return f"{self._store.prefix}:window:{hashlib.sha256(key.encode()).hexdigest()}"
