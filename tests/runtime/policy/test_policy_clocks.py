"""Rates shared by many processes: measured by Redis' clock instead of theirs, and exact to the microsecond."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import AsyncIterator, Iterator
from contextlib import AsyncExitStack
from types import SimpleNamespace
from typing import Any, ClassVar

import pytest
import redis
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

import redis_server
from stubwright_runtime.policy import shared_windows
from stubwright_runtime.policy.shared_windows import SharedWindows
from stubwright_runtime.state.stores import store_at

pytestmark = pytest.mark.anyio

SHOP: Any = SimpleNamespace(name="shop_mcp", manifest={"server": {"name": "shop"}})
SKEWS = (-61, 0, 17, 61)


@pytest.fixture
def skewed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each look at this process' clock finds another time."""
    monkeypatch.setattr(time, "time", lambda real=time.time: real() + random.choice(SKEWS))


@pytest.fixture
async def counters(redis_url: str) -> AsyncIterator[list[SharedWindows]]:
    async with AsyncExitStack() as open_:
        stores = [store_at(redis_url, SHOP) for _ in SKEWS]
        for store in stores:
            await open_.enter_async_context(store.run())
        yield [SharedWindows(store) for store in stores]


async def test_four_clocks_count_as_one(skewed: None, counters: list[SharedWindows]) -> None:
    waits = await asyncio.gather(*(counters[number % 4].hit("ann", 50, 60) for number in range(100)))
    assert waits.count(0) == 50
    assert await counters[0].hit("bob", 100, 60) == 0


async def test_the_time_to_wait_is_a_duration_by_redis_clock(skewed: None, counters: list[SharedWindows]) -> None:
    assert await counters[0].hit("ann", 1, 60) == 0
    for skew, counter in zip(SKEWS, counters, strict=True):
        assert 50 < await counter.hit("ann", 1, 60) <= 60, skew


async def test_bursts_fill_no_second_beyond_the_rate(counters: list[SharedWindows], redis_url: str) -> None:
    """Hits without a pause for longer than a second, from four processes: what Redis kept is looked at."""
    kept = set[int]()
    url, _, prefix = redis_url.partition("?prefix=")
    client = redis.Redis.from_url(url)
    end = time.monotonic() + 1.2

    async def hit(counter: SharedWindows) -> int:
        count = 0
        while time.monotonic() < end:
            if await counter.hit("ann", 20, 1) == 0:
                count += 1
                kept.update(int(one) for one in client.lrange(name, 0, -1))
        return count

    assert await counters[0].hit("ann", 20, 1) == 0
    [name] = client.keys(f"{prefix}:window:*")
    admitted = 1 + sum(await asyncio.gather(*map(hit, counters)))
    times = sorted(kept)
    assert 20 < admitted <= 41
    assert not [early for early, late in zip(times, times[20:], strict=False) if late - early <= 1_000_000]
    assert client.llen(name) <= 20
    assert 0 < client.pttl(name) <= 1001
    client.close()


class Windows(RuleBasedStateMachine):
    """Compares the script of a window with a list of all hits, with a clock that also goes back."""

    server: ClassVar[redis_server.RedisServer]

    def __init__(self) -> None:
        super().__init__()
        self.redis = redis.Redis.from_url(self.server.url)
        self.redis.flushall()
        clock = "{ARGV[#ARGV - 1], ARGV[#ARGV]}"
        self.script = self.redis.register_script(shared_windows.HIT.replace("redis.call('TIME')", clock))
        self.now = 1_700_000_000_000_000
        self.hits: list[int] = []

    def teardown(self) -> None:
        self.redis.close()

    @rule(microseconds=st.sampled_from([1, 400_000, 999_999, 1_000_000, 1_000_001, -1, -5_000_000]))
    def wait(self, microseconds: int) -> None:
        self.now += microseconds

    @rule(limit=st.integers(1, 4))
    def hit(self, limit: int) -> None:
        self.hits = [min(hit, self.now) for hit in self.hits]
        self.hits = [hit for hit in self.hits if hit >= self.now - 1_000_000]
        wait = self.script(keys=["window"], args=[1_000_000, limit, *divmod(self.now, 1_000_000)])
        if len(self.hits) < limit:
            assert wait == 0
            self.hits.append(self.now)
        else:
            assert wait == max(1, self.hits[0] + 1_000_000 - self.now)

    @invariant()
    def no_more_is_kept_than_was_hit(self) -> None:
        assert self.redis.llen("window") <= 4


@pytest.fixture(scope="module")
def own_redis(tmp_path_factory: pytest.TempPathFactory) -> Iterator[redis_server.RedisServer]:
    with redis_server.run_redis(tmp_path_factory.mktemp("redis")) as server:
        yield server


def test_a_window_is_as_its_model(own_redis: redis_server.RedisServer) -> None:
    Windows.server = own_redis
    from hypothesis.stateful import run_state_machine_as_test

    run_state_machine_as_test(Windows, settings=settings(max_examples=15, stateful_step_count=25))
