"""Detection of old records that an attacker with write access restores in Redis, within documented limits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import pytest

from stubwright_runtime.state.nonces import make_nonce
from stubwright_runtime.state.record_index import HighWaterMarks
from stubwright_runtime.state.store import Record, Store
from stubwright_runtime.state.stores import store_at

pytestmark = pytest.mark.anyio

SHOP: Any = SimpleNamespace(name="shop_mcp", manifest={"server": {"name": "shop"}})

Snapshot = dict[bytes, bytes]


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_STATE_KEY", "A" * 43 + "=")


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = store_at(url, SHOP)
    async with store.run():
        yield store


def redis_of(store: Store) -> Any:
    return vars(store)["_redis"]


async def taken(store: Store, what: str = "*") -> Snapshot:
    """Return all data in Redis with these prefixes."""
    redis = redis_of(store)
    return {name: await redis.dump(name) for name in await redis.keys(f"{store.prefix}:{what}")}


async def put_back(store: Store, snapshot: Snapshot) -> None:
    redis = redis_of(store)
    for name, data in snapshot.items():
        await redis.restore(name, 0, data, replace=True)


async def test_an_older_version_counts_as_gone(redis_url: str, caplog: pytest.LogCaptureFixture) -> None:
    async with opened(redis_url) as store, opened(redis_url) as stranger:
        await store.create("basket", "a", b"full", owner="ann", ttl=60, tracked=True)
        before = await taken(store, "basket:*")
        assert await store.replace("basket", "a", b"empty", version=0, payer="ann")
        after = await taken(store, "basket:*")
        await put_back(store, before)
        for one in (store, stranger):
            assert await one.get("basket", "a") is None
            assert not await one.replace("basket", "a", b"x", version=0, payer="ann")
        assert "was restored to an older version" in caplog.text
        await put_back(store, after)
        assert await stranger.get("basket", "a") == Record(b"empty", 1)


async def test_what_was_deleted_stays_so(redis_url: str) -> None:
    async with opened(redis_url) as store, opened(redis_url) as stranger:
        await store.create("basket", "a", b"full", owner="ann", ttl=60, tracked=True)
        before = await taken(store, "basket:*")
        assert await store.delete("basket", "a", payer="ann")
        await put_back(store, before)
        assert await store.get("basket", "a") is None
        assert await stranger.get("basket", "a") is None


async def test_what_was_deleted_while_it_was_taken_away_stays_so(redis_url: str) -> None:
    async with opened(redis_url) as store, opened(redis_url) as stranger:
        await store.create("basket", "a", b"full", owner="ann", ttl=60, tracked=True)
        before = await taken(store, "basket:*")
        for name in before:
            await redis_of(store).delete(name)
        assert not await store.delete("basket", "a", payer="ann")
        await put_back(store, before)
        assert await stranger.get("basket", "a") is None


async def test_no_record_leaves_its_index(redis_url: str) -> None:
    async with opened(redis_url) as store:
        await store.create("basket", "a", b"full", owner="ann", ttl=60, tracked=True)
        [name] = await redis_of(store).keys(f"{store.prefix}:basket:*")
        for fields in ({"r": ""}, {"f": "1"}, {"v": 1}, {"r": "", "f": "1"}):
            [before] = (await taken(store, "basket:*")).items()
            await redis_of(store).hset(name, mapping=fields)
            assert await store.get("basket", "a") is None
            assert not await store.replace("basket", "a", b"x", version=0, payer="ann")
            await put_back(store, dict([before]))
        assert await store.get("basket", "a") == Record(b"full", 0)


async def test_what_is_final_needs_nobody_to_vouch_for_it_and_begins_no_more(redis_url: str) -> None:
    async with opened(redis_url) as store:
        await store.create("task", "a", b"working", owner="ann", ttl=60, tracked=True)
        before = await taken(store, "task:*")
        assert await store.replace("task", "a", b"completed", version=0, payer="ann", final=True)
        assert await store.get("task", "a") == Record(b"completed", 1)
        assert not await store.replace("task", "a", b"working", version=1, payer="ann")
        await put_back(store, before)
        assert await store.get("task", "a") is None


async def test_an_index_that_is_put_back_with_its_records_is_noticed_by_who_heard_of_the_newer_one(
    redis_url: str,
) -> None:
    async with opened(redis_url) as store, opened(redis_url) as other:
        await store.create("basket", "a", b"full", owner="ann", ttl=60, tracked=True)
        before = await taken(store)
        assert await store.delete("basket", "a", payer="ann")
        [index] = [name.decode() for name in before if b":record_index:" in name]
        seen: HighWaterMarks = vars(other)["_seen"]
        async with asyncio.timeout(60):
            while seen.find_number(index) < 2:  # noqa: ASYNC110 - it is heard
                await asyncio.sleep(0.005)
        await put_back(store, before)
        for one in (store, other):
            assert await one.get("basket", "a") is None
            assert not await one.replace("basket", "a", b"x", version=0, payer="ann")
        async with opened(redis_url) as newcomer:
            assert await newcomer.get("basket", "a") is None, "it was put back, and then made anew"
        assert await store.create("basket", "b", b"on", owner="ann", ttl=60, tracked=True)
        assert await store.get("basket", "b") == Record(b"on", 0), "what comes after is as it was"


async def test_a_mark_is_not_spent_again(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stubwright_runtime.state.record_index.PARTS", 1)
    async with opened(redis_url) as store, opened(redis_url) as other:
        nonce, early = make_nonce(), make_nonce()
        before = await taken(store)
        assert await store.use_nonce(nonce, 60, payer="ann")
        spent = await taken(store)
        [index] = [name.decode() for name in spent]
        assert not await other.use_nonce(nonce, 60, payer="ann")
        await redis_of(store).delete(index)
        for one in (store, other):
            assert not await one.use_nonce(nonce, 60, payer="ann")
        await put_back(store, before)
        assert not await store.use_nonce(early, 60, payer="ann"), "what was made before is in doubt"
        assert await store.use_nonce(make_nonce(), 60, payer="ann")


async def test_what_lasts_without_use_for_so_long_needs_no_end(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Indexes forget records that were idle for too long, and do not outlive all of them."""
    monkeypatch.setattr("stubwright_runtime.state.redis._MANY", 2)
    monkeypatch.setattr("stubwright_runtime.state.record_index.PARTS", 1)
    async with opened(redis_url) as store:
        for number in range(6):
            await store.create("basket", f"{number}", b"", owner="ann", ttl=None, idle=0.2, tracked=True)
            if number == 2:
                await asyncio.sleep(0.25)
        [name] = await redis_of(store).keys(f"{store.prefix}:record_index:*")
        assert 0 < await redis_of(store).pttl(name) <= 1300
        index = await store._read(name.decode(), await redis_of(store).get(name))  # type: ignore[attr-defined]
        assert len(index.records) == 3
        assert await store.get("basket", "5") is not None


async def test_changes_of_several_processes_at_once_are_all_vouched_for(
    redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("stubwright_runtime.state.record_index.PARTS", 1)
    async with opened(redis_url) as one, opened(redis_url) as other:
        names = [f"{number}" for number in range(30)]
        made = (
            store.create("basket", name, b"1", owner="ann", ttl=60, tracked=True)
            for name, store in zip(names, [one, other] * 15, strict=True)
        )
        assert all(await asyncio.gather(*made))
        changed = (
            store.replace("basket", name, b"2", version=0, payer="ann") for name in names for store in (one, other)
        )
        assert sum(await asyncio.gather(*changed)) == 30
        found = await asyncio.gather(*(store.get("basket", name) for name in names for store in (one, other)))
        assert found == [Record(b"2", 1)] * 60


def test_so_many_indexes_are_remembered() -> None:
    seen = HighWaterMarks(2)
    for number, name in enumerate("abca", 1):
        seen.record(name, number, None)
    assert [seen.find_number(name) for name in "abc"] == [4, 0, 3]
    seen.record("a", 1, None)
    assert seen.find_number("a") == 4
    seen.record("c", 9, 100)
    assert (seen.find_number("c", 100), seen.find_number("c", 101)) == (9, 0)
