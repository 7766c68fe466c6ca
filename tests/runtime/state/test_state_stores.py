"""Stores in memory and in Redis: the same tests for both."""

from __future__ import annotations

import asyncio
import logging
import socket
import threading
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anyio
import pytest

import redis_server
from stubwright_runtime.state.encryption import DecryptionError, Encryption
from stubwright_runtime.state.leases import LeaseRenewer
from stubwright_runtime.state.memory import MemoryStore
from stubwright_runtime.state.nonces import make_nonce
from stubwright_runtime.state.store import Record, StateLost, Store, StoreConfigurationError
from stubwright_runtime.state.stores import store_at

pytestmark = pytest.mark.anyio

SHOP: Any = SimpleNamespace(name="shop_mcp", manifest={"server": {"name": "shop"}})


@asynccontextmanager
async def opened(url: str) -> AsyncIterator[Store]:
    store = store_at(url, SHOP)
    async with store.run():
        yield store


async def test_a_record_is_kept_until_it_is_deleted(state: str) -> None:
    async with opened(state) as store:
        assert await store.get("basket", "a") is None
        assert await store.create("basket", "a", b"\x00one", owner="ann", ttl=60)
        assert await store.get("basket", "a") == Record(b"\x00one", 0)
        assert await store.get("task", "a") is None
        assert await store.delete("basket", "a")
        assert not await store.delete("basket", "a")
        assert await store.get("basket", "a") is None


async def test_a_size_is_told_without_reading(state: str) -> None:
    async with opened(state) as store:
        assert await store.measure("basket", "a") is None
        await store.create("basket", "a", b"x" * 1000, owner="ann", ttl=60)
        await store.create("basket", "empty", b"", owner="ann", ttl=60)
        size = await store.measure("basket", "a")
        assert size is not None
        assert 1000 <= size < 1200
        assert await store.measure("basket", "empty") is not None
        assert await store.measure("task", "a") is None
        await store.delete("basket", "a")
        assert await store.measure("basket", "a") is None


async def test_of_several_replacements_of_one_version_one_is_kept(state: str) -> None:
    async with opened(state) as store:
        await store.create("basket", "a", b"0", owner="ann", ttl=60)
        kept = await asyncio.gather(*(store.replace("basket", "a", b"%d" % n, version=0) for n in range(20)))
        assert sum(kept) == 1
        assert await store.get("basket", "a") == Record(b"%d" % kept.index(True), 1)
        assert not await store.replace("basket", "a", b"x", version=0)
        assert await store.replace("basket", "a", b"x", version=1)
        assert not await store.replace("basket", "b", b"x", version=0)


async def test_a_record_is_over_in_time(state: str) -> None:
    async with opened(state) as store:
        await store.create("basket", "short", b"", owner="ann", ttl=0.2)
        await store.create("basket", "idle", b"", owner="ann", ttl=60, idle=0.4)
        await store.create("basket", "used", b"", owner="ann", ttl=1.0, idle=0.4)
        await store.create("basket", "for good", b"", owner="ann", ttl=None)
        for _ in range(3):
            await asyncio.sleep(0.25)
            assert await store.get("basket", "used") is not None
        assert [key for key, _ in await store.list_owned("basket", "ann")] == ["used", "for good"]
        assert await store.get("basket", "short") is None
        assert await store.get("basket", "idle") is None
        assert not await store.replace("basket", "idle", b"", version=0)
        await asyncio.sleep(0.35)
        assert await store.get("basket", "used") is None, "use does not outlast the ttl"
        assert await store.get("basket", "for good") is not None


async def test_redis_counts_times_in_milliseconds_and_at_least_one(redis_url: str) -> None:
    async with opened(redis_url) as store:
        await store.hold("job", "me", 10_000)
        await store.create("basket", "ends", b"", owner="ann", ttl=10_000)
        await store.create("basket", "idle", b"", owner="ann", ttl=None, idle=10_000)
        redis: Any = vars(store)["_redis"]
        names = [name for kind in ("lease", "basket") for name in await redis.keys(f"{store.prefix}:{kind}:*")]
        assert len(names) == 3
        for name in names:
            assert 9_995_000 < await redis.pttl(name) <= 10_000_000
        for seconds in (0, 0.0001):
            assert await store.hold(f"{seconds}", "me", seconds), "Redis takes no 0"


async def test_an_owner_has_so_many_and_no_more(state: str) -> None:
    async with opened(state) as store:
        made = await asyncio.gather(
            *(store.create("basket", f"{n}", b"%d" % n, owner="ann", ttl=60, most=3) for n in range(10))
        )
        assert sum(made) == 3
        assert await store.create("basket", "bob's", b"", owner="bob", ttl=60, most=3)
        assert await store.create("order", "another kind", b"", owner="ann", ttl=60, most=3)
        keys = [key for key, _ in await store.list_owned("basket", "ann")]
        assert len(keys) == 3
        await store.delete("basket", keys[0])
        assert await store.create("basket", "last", b"9", owner="ann", ttl=0.1, most=3)
        assert await store.list_owned("basket", "ann") == [
            *[(key, Record(key.encode(), 0)) for key in keys[1:]],
            ("last", Record(b"9", 0)),
        ]
        await asyncio.sleep(0.15)
        assert await store.create("basket", "next", b"", owner="ann", ttl=60, most=3)
        assert await store.list_owned("basket", "nobody") == []


async def test_a_mark_is_spent_once(state: str) -> None:
    async with opened(state) as store:
        nonces = [make_nonce() for _ in range(3)]
        spent = await asyncio.gather(*(store.use_nonce(nonces[0], 60) for _ in range(10)))
        assert sum(spent) == 1
        assert await store.use_nonce(nonces[1], 60)
        assert not await store.use_nonce(nonces[0], 60)


async def test_a_lease_has_one_holder(state: str) -> None:
    async with opened(state) as store:
        got = await asyncio.gather(*(store.hold("task", f"worker {n}", 1.5) for n in range(10)))
        assert sum(got) == 1
        holder = f"worker {got.index(True)}"
        await store.release("task", "another")
        assert not await store.hold("task", "another", 1.5)
        await asyncio.sleep(0.8)
        assert not await asyncio.to_thread(store.renew, "task", "another", 1.5)
        assert await asyncio.to_thread(store.renew, "task", holder, 1.5)
        await asyncio.sleep(0.8)
        assert not await store.hold("task", "another", 1.5)
        await store.release("task", holder)
        assert not await asyncio.to_thread(store.renew, "task", holder, 1.5), "a renewal does not take a lease"
        assert await store.hold("task", "another", 0.05)
        await asyncio.sleep(0.1)
        assert await store.hold("task", holder, 60), "it is over by itself"


async def test_sets(state: str) -> None:
    async with opened(state) as store:
        assert await store.list_members("off") == frozenset()
        assert await store.switch("off", "ä", on=True)
        assert not await store.switch("off", "ä", on=True)
        assert await store.switch("off", "b", on=True)
        assert await store.list_members("off") == {"ä", "b"}
        assert await store.switch("off", "b", on=False)
        assert not await store.switch("off", "b", on=False)
        assert await store.list_members("off") == {"ä"}
        assert await store.list_members("on") == frozenset()


async def test_what_is_published_is_heard(state: str, caplog: pytest.LogCaptureFixture) -> None:
    heard: list[bytes] = []

    async def hear(data: bytes | None) -> None:
        if data is not None:
            heard.append(data)

    async def fail(data: bytes | None) -> None:
        if data is not None:
            raise ValueError("not for me")

    async with opened(state) as store:
        if store.is_shared:
            store.listen("news", fail)
        leave = store.listen("news", hear)
        await store.publish("news", b"\xffone")
        await store.publish("weather", b"two")
        await _until(lambda: heard == [b"\xffone"])
        assert ("not for me" in caplog.text) == store.is_shared
        leave()
        leave()
        await store.publish("news", b"three")
        await asyncio.sleep(0.05)
        assert heard == [b"\xffone"]


def test_a_short_lease_is_renewed_while_the_thread_waits_for_a_long_one() -> None:
    waiting, renewed = threading.Event(), threading.Event()

    class Condition(threading.Condition):
        def wait(self, timeout: float | None = None) -> bool:
            waiting.set()  # the lock is held until the thread waits
            return super().wait(timeout)

    store: Any = SimpleNamespace(renew=lambda name, holder, seconds: renewed.set())
    renewer = LeaseRenewer(store)
    renewer._changed = Condition()
    with renewer.keep("long", "me", 3600):
        assert waiting.wait(60)
        with renewer.keep("short", "me", 0.01):
            assert renewed.wait(10)


async def test_memory_forgets_what_is_over() -> None:
    now = 0.0
    store = MemoryStore(lambda: now)
    for number in range(100):
        await store.create("basket", f"{number}", b"", owner=f"{number}", ttl=5)
        await store.hold(f"{number}", "me", 5)
        await store.use_nonce(make_nonce(), 5)
    assert len(store) == 300
    now = 20.0
    await store.create("basket", "new", b"", owner="me", ttl=5)
    await store.use_nonce(make_nonce(), 5)
    assert len(store) == 2


@pytest.mark.parametrize("url", ["sqlite:///x", "redis", "memory", "http://localhost", ""])
def test_other_places_are_refused(url: str) -> None:
    with pytest.raises(
        StoreConfigurationError, match=r"is not supported for state; use memory:// or redis://HOST:PORT"
    ):
        store_at(url, SHOP)


@pytest.mark.parametrize("url", ["redis://localhost:none", "redis://localhost/0?db=two"])
def test_urls_that_redis_does_not_take_are_refused(url: str) -> None:
    with pytest.raises(StoreConfigurationError, match="the state URL is invalid"):
        store_at(url, SHOP)


def test_options_that_change_how_redis_is_used_are_refused() -> None:
    with pytest.raises(
        StoreConfigurationError,
        match=r"has decode_responses, protocol; the allowed options are prefix, db, .*; with TLS .*ssl_ca_certs",
    ):
        store_at("redis://localhost/0?protocol=2&decode_responses=true&prefix=x&ssl_ca_certs=y", SHOP)


@pytest.mark.parametrize("key", ["short", "c2hvcnQ=", "ä"])
def test_keys_that_are_none_are_refused(key: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_STATE_KEY", key)
    with pytest.raises(StoreConfigurationError, match="SHOP_STATE_KEY has no keys of `openssl rand -base64 32`"):
        store_at("redis://localhost", SHOP)


KEYS = ["A" * 43 + "=", "/+" * 21 + "A="]


@pytest.mark.parametrize("odd", ["", "[a-c]?*", "%5C%5D%5E-%7B"])
async def test_two_processes_see_the_same(odd: str, redis_url: str) -> None:
    redis_url += odd
    async with opened(redis_url) as one, opened(redis_url) as other, opened(f"{redis_url}x") as apart:
        await one.create("basket", "a", b"1", owner="ann", ttl=60)
        assert await other.get("basket", "a") == Record(b"1", 0)
        assert await apart.get("basket", "a") is None
        assert await one.list_secrets() == await other.list_secrets() != await apart.list_secrets()
        heard: list[bytes | None] = []

        async def hear(data: bytes | None) -> None:
            heard.append(data)

        other.listen("news", hear)
        await one.publish("news", b"1")
        await _until(lambda: heard == [b"1"])


async def test_nothing_can_be_read_or_made_in_redis(redis_url: str, caplog: pytest.LogCaptureFixture) -> None:
    async with opened(redis_url) as store:
        await store.create("basket", "handle-of-ann", b"four apples", owner="ann", ttl=60)
        redis: Any = vars(store)["_redis"]
        dump = record = b""
        for name in await redis.keys(f"{store.prefix}:*"):
            dump += name
            if await redis.type(name) == b"hash":
                found = await redis.hgetall(name)
                dump += b"".join(found.values())
                record = name if b"d" in found else record
            elif await redis.type(name) == b"zset":
                dump += b"".join(await redis.zrange(name, 0, -1))
        assert b"basket" in dump
        for word in (b"handle-of-ann", b"four apples", b"ann"):
            assert word not in dump
        sealed: bytes = await redis.hget(record, "d")
        await store.create("basket", "other", b"", owner="ann", ttl=60)
        [other] = [name for name in await redis.keys(f"{store.prefix}:basket:*") if name != record]
        for forged in (sealed, b"", b"\x80\x04.", sealed[:-1] + bytes([sealed[-1] ^ 1])):
            await redis.hset(other, "d", forged)
            assert await store.get("basket", "other") is None
        assert "was encrypted with an unknown key; it is treated as removed" in caplog.text
        assert [key for key, _ in await store.list_owned("basket", "ann")] == ["handle-of-ann"]


async def test_keys_can_be_changed(redis_url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SHOP_STATE_KEY", KEYS[0])
    async with opened(redis_url) as store:
        await store.create("basket", "a", b"1", owner="ann", ttl=60)
    monkeypatch.setenv("SHOP_STATE_KEY", f"{KEYS[1]} {KEYS[0]}")
    async with opened(redis_url) as store:
        assert await store.get("basket", "a") == Record(b"1", 0)
        await store.create("basket", "b", b"2", owner="ann", ttl=60)
        assert [len(key) for key in await store.list_secrets()] == [32, 32]
    monkeypatch.setenv("SHOP_STATE_KEY", KEYS[1])
    async with opened(redis_url) as store:
        assert await store.get("basket", "a") is None
        assert await store.get("basket", "b") == Record(b"2", 0)


def test_a_seal_holds_at_one_place() -> None:
    encryption = Encryption([b"k" * 32])
    assert encryption.decrypt(encryption.encrypt(b"data", "here"), "here") == b"data"
    assert encryption.encrypt(b"data", "here") != encryption.encrypt(b"data", "here")
    with pytest.raises(DecryptionError):
        encryption.decrypt(encryption.encrypt(b"data", "here"), "there")
    with pytest.raises(DecryptionError):
        Encryption([b"l" * 32]).decrypt(encryption.encrypt(b"data", "here"), "here")
    for keys in ([], [b"short"]):
        with pytest.raises(ValueError, match="32 bytes"):
            Encryption(keys)


async def test_a_lost_store_says_so_and_comes_back(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    with redis_server.run_redis(tmp_path) as server:
        async with opened(server.url.replace("redis://", "redis://:@")) as store:
            heard: list[bytes | None] = []

            async def hear(data: bytes | None) -> None:
                heard.append(data)

            store.listen("news", hear)
            await store.create("basket", "a", b"1", owner="ann", ttl=60)
            await asyncio.gather(*(store.get("basket", "a") for _ in range(8)))  # so that there are as many connections
            server.stop(kill=True)
            assert not await store.check()
            for lost in (
                lambda: store.get("basket", "a"),
                lambda: store.create("basket", "b", b"", owner="ann", ttl=60),
                lambda: store.replace("basket", "a", b"", version=0),
                lambda: store.list_owned("basket", "ann"),
                lambda: store.use_nonce(make_nonce(), 60),
                lambda: store.hold("task", "me", 60),
                lambda: store.list_members("off"),
                lambda: store.switch("off", "a", on=True),
                lambda: store.publish("news", b"1"),
                store.list_secrets,
            ):
                with pytest.raises(StateLost, match=f"redis://127.0.0.1:{server.port}/0 does not respond"):
                    await lost()
            server.start()
            assert await store.check()
            found = await asyncio.gather(*(store.get("basket", "a") for _ in range(8)))
            assert found == [None] * 8, "it was kept in the memory of Redis alone, and no connection of before is used"
            assert await store.create("basket", "b", b"2", owner="ann", ttl=60)
            assert await store.get("basket", "b") == Record(b"2", 0), "also with the new secret"
            await _until(lambda: heard == [None])
            await store.publish("news", b"1")
            await _until(lambda: heard == [None, b"1"])
    assert caplog.text.count("is unavailable") == caplog.text.count("is available again") == 1


async def test_a_server_starts_without_its_store(tmp_path: Path) -> None:
    server = redis_server.RedisServer(tmp_path, "--save", "")
    async with opened(server.url) as store:
        assert not await store.check()


async def test_a_password_is_for_redis_alone(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with redis_server.run_redis(tmp_path, "--save", "", "--requirepass", "s3cret") as server:
        where = server.url.removeprefix("redis://")
        async with opened(f"redis://:s3cret@{where}") as store:
            assert await store.create("basket", "a", b"1", owner="ann", ttl=60)
        async with opened(f"redis://:wr0ng@{where}") as store:
            with pytest.raises(StateLost) as told:
                await store.get("basket", "a")
    assert "invalid username-password pair" in caplog.text
    for secret in ("s3cret", "wr0ng"):
        assert secret not in caplog.text + str(told.value) + store.url


async def test_tls(tmp_path: Path) -> None:
    await anyio.run_process(
        [
            *("openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"),
            *("-keyout", "key.pem", "-out", "cert.pem", "-days", "2", "-subj", "/CN=localhost"),
            *("-addext", "subjectAltName=IP:127.0.0.1"),
        ],
        cwd=tmp_path,
    )
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    tls = ("--tls-port", f"{port}", "--tls-auth-clients", "no", "--save", "")
    files = ("--tls-cert-file", f"{tmp_path}/cert.pem", "--tls-key-file", f"{tmp_path}/key.pem")
    with redis_server.run_redis(tmp_path, *tls, *files, "--tls-ca-cert-file", f"{tmp_path}/cert.pem"):
        async with opened(f"rediss://127.0.0.1:{port}/0?ssl_ca_certs={tmp_path}/cert.pem") as store:
            assert await store.create("basket", "a", b"1", owner="ann", ttl=60)
        async with opened(f"rediss://127.0.0.1:{port}/0") as store:
            assert not await store.check(), "a certificate that nobody vouches for"


async def _until(is_so: Any) -> None:
    for _ in range(300):
        if is_so():
            return
        await asyncio.sleep(0.01)
    assert is_so()
