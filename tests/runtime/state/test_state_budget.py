"""The size of a store is bounded, in memory and in Redis: the same tests for both."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from types import SimpleNamespace
from typing import Any

import pytest

from stubwright_runtime.state.budget import OVERHEAD, Budget, BudgetExceeded, count_bytes, format_bytes
from stubwright_runtime.state.memory import MemoryStore
from stubwright_runtime.state.nonces import make_nonce
from stubwright_runtime.state.store import Record, Store
from stubwright_runtime.state.stores import store_at

pytestmark = pytest.mark.anyio

EACH = 10 * OVERHEAD


@asynccontextmanager
async def opened(url: str, each: int = EACH, total: int = 4 * EACH) -> AsyncIterator[Store]:
    storage = {"maxBytesPerPrincipal": each, "maxBytes": total}
    package: Any = SimpleNamespace(name="shop_mcp", manifest={"server": {"name": "shop"}, "storage": storage})
    store = store_at(url, package)
    async with store.run():
        yield store


async def used(store: Store) -> dict[str, int]:
    """Return the bytes of all accounts, and their total as `*`; the store counts exactly its contents."""
    if isinstance(store, MemoryStore):
        found = {payer: account.used for payer, account in vars(store)["_accounts"].items()}
        return {**found, "*": vars(store)["_total"]}
    redis: Any = vars(store)["_redis"]
    return {name.decode(): int(count) for name, count in (await redis.hgetall(f"{store.prefix}:used")).items()}


async def refusal(awaitable: Any) -> BudgetExceeded:
    with pytest.raises(BudgetExceeded) as caught:
        await awaitable
    return caught.value


async def test_a_payer_has_so_many_bytes_and_another_has_its_own(state: str) -> None:
    async with opened(state) as store:
        big = bytes(4 * OVERHEAD)
        assert await store.create("basket", "a", big, owner="ann", ttl=60)
        told = await refusal(store.create("basket", "b", bytes(5 * OVERHEAD), owner="ann", ttl=60))
        assert (told.whose, told.limit) == ("caller", EACH)
        assert told.seconds is not None
        assert 50 < told.seconds <= 60
        assert "You have 5 KiB of tasks, handles and results stored here. The limit is 10 KiB" in str(told)
        assert "Try again in 60 seconds" in str(told) or "Try again in 59 seconds" in str(told)
        assert "end a handle or cancel a task" in str(told)
        assert await store.get("basket", "b") is None, "nothing is there by half"
        assert await store.create("basket", "bob's", big, owner="bob", ttl=60)
        assert await store.create("order", "s1", big, owner="a session", ttl=60, payer="cid")
        told = await refusal(store.create("order", "s2", bytes(5 * OVERHEAD), owner="another", ttl=60, payer="cid"))
        assert told.whose == "caller"
        assert await store.delete("basket", "a")
        assert await store.create("basket", "b", bytes(8 * OVERHEAD), owner="ann", ttl=60)


async def test_room_for_what_follows_is_asked_for_and_not_taken(state: str) -> None:
    async with opened(state) as store:
        nothing = await used(store)
        told = await refusal(store.create("place", "a", b"", owner="ann", ttl=60, room=EACH))
        assert (told.whose, await used(store)) == ("caller", nothing)
        assert await store.create("place", "a", b"", owner="ann", ttl=60, room=8 * OVERHEAD)
        assert (await used(store))["*"] == count_bytes("a")


async def test_replacing_counts_what_it_adds(state: str) -> None:
    async with opened(state) as store:
        await store.create("basket", "a", b"", owner="ann", ttl=None)
        told = await refusal(store.replace("basket", "a", bytes(EACH), version=0))
        assert told.seconds is None
        assert "End a handle or cancel a task that you no longer need." in str(told)
        assert await store.get("basket", "a") == Record(b"", 0)
        assert await store.replace("basket", "a", bytes(8 * OVERHEAD), version=0)
        assert await store.replace("basket", "a", b"1", version=1), "less is always taken"
        assert await store.replace("basket", "a", bytes(EACH), version=2, final=True), "and so is what ends it"
        assert (await refusal(store.create("basket", "b", b"", owner="ann", ttl=60))).whose == "caller"


async def test_what_is_over_is_given_back_exactly(state: str) -> None:
    async with opened(state) as store:
        await store.create("basket", "short", bytes(4 * OVERHEAD), owner="ann", ttl=1.0)
        await store.create("basket", "idle", bytes(2 * OVERHEAD), owner="ann", ttl=None, idle=1.5)
        await refusal(store.create("basket", "more", bytes(2 * OVERHEAD), owner="ann", ttl=60))
        await asyncio.sleep(1.05)
        assert await store.get("basket", "idle") is not None
        assert await store.create("basket", "more", bytes(2 * OVERHEAD), owner="ann", ttl=60)
        told = await refusal(store.create("basket", "last", bytes(4 * OVERHEAD), owner="ann", ttl=60))
        assert told.seconds is not None
        assert told.seconds <= 1.51
        await asyncio.sleep(1.6)
        assert await store.create("basket", "last", b"", owner="bob", ttl=60), "whoever comes next gives it back"
        assert sorted((await used(store)).values()) == sorted(
            [
                count_bytes("more", bytes(2 * OVERHEAD)),
                count_bytes("last"),
                count_bytes("more", bytes(2 * OVERHEAD)) + count_bytes("last"),
            ]
        )
        assert await store.delete("basket", "more")
        assert await store.delete("basket", "last")
        assert set((await used(store)).values()) <= {0}


async def test_nobody_uses_up_what_is_there_for_all(state: str) -> None:
    async with opened(state, each=100 * OVERHEAD, total=30 * OVERHEAD) as store:

        async def fill(owner: str) -> int:
            for count in range(30):
                try:
                    await store.create("basket", f"{owner}{count}", b"", owner=owner, ttl=60)
                except BudgetExceeded as error:
                    told.append(error)
                    return count
            return 30

        told: list[BudgetExceeded] = []
        counts = [await fill(owner) for owner in ("ann", "bob", "cid")]
        assert counts == [14, 7, 4], "each leaves at least as many bytes as it uses"
        assert [one.whose for one in told] == ["server"] * 3
        assert "This server's storage is nearly full" in str(told[0])
        assert "Try again in" in str(told[0])


async def test_spare_records_are_evicted_first_oldest_first(state: str) -> None:
    async with opened(state) as store:
        for number in range(12):
            await store.create("event", f"{number}", b"", owner=f"s{number % 2}", ttl=60, payer="ann", spare=True)
            await asyncio.sleep(0.002)
        left = [key for one in ("s0", "s1") for key, _ in await store.list_owned("event", one)]
        assert len(left) == 9
        assert {"0", "1", "2"}.isdisjoint(left)
        assert await store.create("basket", "a", bytes(7 * OVERHEAD), owner="ann", ttl=60)
        left = [key for one in ("s0", "s1") for key, _ in await store.list_owned("event", one)]
        assert left == ["11"]
        await refusal(store.create("basket", "b", bytes(2 * OVERHEAD), owner="ann", ttl=60))
        assert await store.create("basket", "c", b"", owner="bob", ttl=60)


async def test_spare_records_make_room_for_other_callers(state: str) -> None:
    async with opened(state) as store:
        for number, owner in enumerate("abcdaef"):
            await asyncio.sleep(0.002)
            with suppress(BudgetExceeded):
                await store.create("event", f"{number}", bytes(4 * OVERHEAD), owner=owner, ttl=60, spare=True)
        left = {owner: [key for key, _ in await store.list_owned("event", owner)] for owner in "abcdef"}
        assert left == {"a": ["4"], "b": ["1"], "c": ["2"], "d": ["3"], "e": ["5"], "f": ["6"]}
        assert await store.create("basket", "a", bytes(8 * OVERHEAD), owner="ann", ttl=60)
        left = {owner: [key for key, _ in await store.list_owned("event", owner)] for owner in "abcdef"}
        assert left == {"a": ["4"], "b": [], "c": [], "d": ["3"], "e": ["5"], "f": ["6"]}
        await refusal(store.create("basket", "b", bytes(20 * OVERHEAD), owner="bob", ttl=60))
        assert len(await used(store)) == 6, "empty accounts are removed"
        assert (await used(store))["*"] == sum(size for payer, size in (await used(store)).items() if payer != "*")


async def test_a_record_that_cannot_fit_evicts_nothing(state: str) -> None:
    async with opened(state) as store:
        for owner in ("ann", "cat", "dan"):
            assert await store.create("basket", owner, bytes(8 * OVERHEAD), owner=owner, ttl=60)
        for owner in ("eve", "bob"):
            assert await store.create("event", owner, bytes(OVERHEAD), owner=owner, ttl=60, spare=True)
        for owner in ("bob", "fay"):
            refused = await refusal(store.create("basket", owner, bytes(6 * OVERHEAD), owner=owner, ttl=60))
            assert refused.whose == "server"
        assert await store.get("event", "bob")
        assert await store.get("event", "eve")


async def test_heads_are_read_without_the_rest(state: str) -> None:
    async with opened(state) as store:
        for name in ("a", "b"):
            await store.create("task", name, b"body", owner="ann", ttl=60, head=name.encode())
        assert await store.list_heads("task", "ann") == [b"a", b"b"]
        assert await store.replace("task", "a", b"body", version=0, head=b"a, later")
        assert await store.list_heads("task", "ann") == [b"a, later", b"b"]
        assert await store.list_heads("task", "bob") == []


async def test_marks_are_bounded_for_each_payer(state: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("stubwright_runtime.state.record_index.MAX_NONCES", 4)
    monkeypatch.setattr("stubwright_runtime.state.record_index.PARTS", 1)
    monkeypatch.setattr("stubwright_runtime.state.memory.MAX_NONCES", 4)
    nonces = [make_nonce() for _ in range(6)]
    async with opened(state) as store:
        for nonce in nonces[1:5]:
            assert await store.use_nonce(nonce, 60, payer="ann")
        assert await store.use_nonce(nonces[5], 60, payer="ann")
        for nonce in nonces:
            assert not await store.use_nonce(nonce, 60, payer="ann")
        assert await store.use_nonce(nonces[0], 60, payer="bob"), "nobody spends the marks of others"


@pytest.mark.parametrize("seed", range(3))
async def test_the_count_is_what_is_there_whatever_happens(state: str, seed: int) -> None:
    """Concurrent random creations, replacements and removals by several payers; the sum of the contents is checked."""
    chance = random.Random(seed)
    there: dict[tuple[str, str], tuple[str, int, int]] = {}

    async def step(store: Store, number: int) -> None:
        kind, key, payer = chance.choice(["basket", "task"]), f"{chance.randrange(12)}", chance.choice("ab")
        name, data = (kind, f"{payer}{key}"), bytes(chance.randrange(3 * OVERHEAD))
        try:
            if name not in there:
                spare = kind == "task" and number % 3 == 0
                if await store.create(*name, data, owner=payer, ttl=60, spare=spare, tracked=kind == "basket"):
                    there[name] = payer, 0, count_bytes(name[1], data)
            elif chance.random() < 0.5:
                tracked = payer if kind == "basket" else None
                if await store.replace(*name, data, version=there[name][1], payer=tracked):
                    there[name] = payer, there[name][1] + 1, count_bytes(name[1], data)
            else:
                await store.delete(*name, payer=payer if kind == "basket" else None)
                del there[name]
        except BudgetExceeded:
            pass

    async with opened(state) as store:
        for number in range(150):
            await step(store, number)
            for name in [*there]:  # spare ones may have gone
                if name[0] == "task" and number % 10 == 0 and await store.get(*name) is None:
                    del there[name]
        for name in [*there]:
            if await store.get(*name) is None:
                assert name[0] == "task"
                del there[name]
        found = await used(store)
        assert found.pop("*") == sum(size for _, _, size in there.values())
        sums = [sum(size for payer, _, size in there.values() if payer == one) for one in "ab"]
        assert sorted(found.values()) == sorted(one for one in sums if one)


def test_a_manifest_says_how_much() -> None:
    assert Budget.from_manifest({}) == Budget(16 * 1024**2, 128 * 1024**2)
    assert Budget.from_manifest({"storage": {"maxBytes": "1GiB"}}) == Budget(16 * 1024**2, 1024**3)
    assert [format_bytes(one) for one in (17, 1024, 1024**2 * 16 - 1, 3 * 1024**3)] == [
        "17 bytes",
        "1 KiB",
        "15.9 MiB",
        "3 GiB",
    ]
