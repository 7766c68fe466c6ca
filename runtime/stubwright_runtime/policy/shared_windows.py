"""Sliding windows of rate limits in Redis."""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ..state.store import Store

HIT: Final = """
local time = redis.call('TIME')
local now, window, limit = time[1] * 1000000 + time[2], tonumber(ARGV[1]), tonumber(ARGV[2])
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
if redis.call('LLEN', KEYS[1]) >= limit then return math.max(1, tonumber(oldest) + window - now) end
redis.call('LPUSH', KEYS[1], string.format('%.0f', now))
redis.call('PEXPIRE', KEYS[1], math.ceil(window / 1000) + 1)
return 0
"""
"""A Lua script that counts a hit. It returns 0, or the microseconds to wait. The list contains the times of at most
`limit` hits in microseconds, newest first.

After a failover, the new server's clock may be behind, so hits in the future are moved to the current time.
"""


class SharedWindows:
    """Rate limit windows that processes share through a store."""

    def __init__(self, store: Store) -> None:
        self._store = store
        redis: Any = importlib.import_module("redis.asyncio").Redis(connection_pool=store.pool)
        self._hit = redis.register_script(HIT)

    async def hit(self, key: str, limit: int, seconds: int) -> float:
        """Count a hit and return 0 if the window has room. Otherwise, return the seconds until it has room.

        Args:
            key: The key of the window.
            limit: The maximum number of hits in a window.
            seconds: The length of the window in seconds.

        Raises:
            StateLost: The store is unavailable.
        """
        async with self._store.exchange(writes=True):
            wait = await self._hit(keys=[f"{self._store.prefix}:window:{key}"], args=[seconds * 1_000_000, limit])
        return int(wait) / 1_000_000
