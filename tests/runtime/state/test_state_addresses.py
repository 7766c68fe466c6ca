"""URLs of state: rejected URLs at start, and passwords that no message repeats."""

from __future__ import annotations

import asyncio
import logging
import re
import secrets
import socket
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

import redis_server
from stubwright_runtime.policy import shared_windows
from stubwright_runtime.policy.shared_windows import SharedWindows
from stubwright_runtime.state import scripts
from stubwright_runtime.state.nonces import make_nonce
from stubwright_runtime.state.store import StoreConfigurationError
from stubwright_runtime.state.stores import store_at
from stubwright_runtime.tasks.engines.redis import StreamEngine

SHOP: Any = SimpleNamespace(name="shop_mcp", manifest={"server": {"name": "my-shop"}})
DEPLOYING = Path(__file__).parents[3] / "docs" / "deploy.md"


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://:S3cretPW@127.0.0.1:26379/mymaster",
        "SENTINEL://:S3cretPW@127.0.0.1:26379",
        '"redis://:S3cretPW@127.0.0.1:6379/0"',
        "'REDIS://:S3cretPW@127.0.0.1:6379/0'",
        'redis://:S3cretPW@127.0.0.1:6379/0"',
        " redis://:S3cretPW@127.0.0.1",
        ":S3cretPW@127.0.0.1:6379",
        "redis:S3cretPW@127.0.0.1",
        "redis://:S3cretPW",
        "Redis://:[S3cretPW@127.0.0.1:6379/0",
        "redis://:S3cretPW]@127.0.0.1:6379/0",
        "redis://:12/S3cretPW@127.0.0.1:6379/0",
        "redis://:12?S3cretPW@127.0.0.1:6379/0",
        "redis://:12#S3cretPW@127.0.0.1:6379/0",
        "redis://:S3cretPW/@127.0.0.1:6379/0",
        "rediss://me:S3cretPW℀@127.0.0.1:99999/0",
        "redis://me:S3cretPW@ho℀st/0",
        "redis://me:S3cretPW@[::1/0",
        "redis://me:S3cretPW@127.0.0.1/0?foo=1",
        "redis://127.0.0.1/0?password=S3cretPW&db=two",
        "unix://:S3/cretPW@/run/redis.sock",
        "redis://:12?s_cretpw=x@127.0.0.1:6379/0",
        "redis://:S3cretPW@127.0.0.1\n",
        "redis://:S3cretPW@127.0.0.1:6379/0 ",
        "unix://:S3cretPW@/run/redis.sock\n",
    ],
)
def test_no_message_repeats_a_password(url: str) -> None:
    with pytest.raises(StoreConfigurationError) as raised:
        store_at(url, SHOP)
    assert "cretpw" not in str(raised.value).lower()
    assert "127.0.0.1" not in str(raised.value)


@pytest.mark.parametrize(
    ("url", "shown", "name", "password"),
    [
        ("REDIS://me:S3cret@host:1/2", "redis://host:1/2", "me", "S3cret"),
        ("Rediss://:a%2Fb%40c@[::1]:1", "rediss://[::1]:1", None, "a/b@c"),
        ("redis://me:a@b:c@host", "redis://host", "me", "a@b:c"),
        ("redis://me:℀@host", "redis://host", "me", "℀"),
        ("redis://host?password=a@b&prefix=c", "redis://host", None, "a@b"),
        ("unix://me:pw@/run/redis.sock?db=1", "unix:///run/redis.sock", "me", "pw"),
        ("redis://", "redis://", None, None),
    ],
)
def test_credentials_are_used_and_not_shown(url: str, shown: str, name: str | None, password: str | None) -> None:
    store: Any = store_at(url, SHOP)
    assert store.url == shown
    given = store.pool.connection_kwargs
    assert (given.get("username"), given.get("password")) == (name, password)
    assert store.prefix == ("c" if "prefix" in url else "stubwright:my-shop")


@pytest.mark.parametrize(
    ("url", "message"),
    [
        (
            "rediss://host?ssl_cafile=/etc/ca.pem",
            r"has ssl_cafile; the allowed options are prefix, .*; with TLS .*ssl_ca_certs",
        ),
        (
            "redis://host?ssl_cert_reqs=none",
            "has ssl_cert_reqs, which requires TLS; write rediss:// instead of redis://",
        ),
        ("unix:///x?ssl_ca_certs=/x", "has ssl_ca_certs, which requires TLS"),
        ("rediss://host?ssl_cert_reqs=some", "is invalid"),
        ("rediss://host?ssl_min_version=9", "is invalid"),
        ("rediss://host?ssl_ca_certs=/nowhere/ca.pem", "is invalid: .*No such file"),
        ("rediss://host?ssl_ciphers=none", "is invalid"),
    ],
)
def test_tls_options_are_checked_at_start(url: str, message: str) -> None:
    with pytest.raises(StoreConfigurationError, match=message):
        store_at(url, SHOP)


@pytest.mark.anyio
async def test_a_redis_cluster_is_noticed(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        bus = str(free.getsockname()[1])
    options = ("--save", "", "--cluster-enabled", "yes", "--cluster-port", bus)
    with redis_server.run_redis(tmp_path, *options) as redis, caplog.at_level(logging.WARNING):
        store = store_at(f"redis://127.0.0.1:{redis.port}", SHOP)
        async with store.run():
            assert not await store.check()
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert len(errors) == 1
    assert "cannot be used: it is in cluster mode" in errors[0]


@pytest.mark.anyio
async def test_a_user_with_the_documented_acl_suffices(
    shared_redis: redis_server.RedisServer, caplog: pytest.LogCaptureFixture
) -> None:
    text = DEPLOYING.read_text()
    rule = re.search(r"^ACL SETUSER shop (.+?)\n```", text, re.MULTILINE | re.DOTALL)
    assert rule is not None
    name = secrets.token_hex(8)
    in_scripts = re.findall(r"redis\.call\('([A-Z]+)'", "".join([*scripts.ALL.values(), shared_windows.HIT]))
    assert {f"+{command.lower()}" for command in in_scripts} - {*rule[1].split()} == set()
    words = rule[1].replace("\\\n", " ").replace("stubwright:shop", f"stubwright:{name}").split()
    library = pytest.importorskip("redis")
    admin = library.Redis.from_url(shared_redis.url)
    admin.execute_command("ACL", "SETUSER", name, *words)
    try:
        package: Any = SimpleNamespace(name="shop_mcp", manifest={"server": {"name": name}})
        store = store_at(shared_redis.url.replace("redis://", f"redis://{name}:PASSWORD@"), package)
        with caplog.at_level(logging.WARNING):
            async with store.run():
                await _use_everything(store)
        denied = {entry["object"] for entry in admin.acl_log() if entry["username"] == name}
        assert denied <= {"client|setinfo"}  # since Redis 7.2, and the library does without
        assert "lost" not in caplog.text
    finally:
        admin.acl_deluser(name)
        admin.close()


async def _use_everything(store: Any) -> None:
    assert await store.check()
    for number in range(70):
        assert await store.create("basket", f"{number}", b"a", owner="ann", ttl=None, idle=60, most=100, tracked=True)
    assert await store.create("basket", "short", b"a", owner="ann", ttl=60, spare=True)
    assert await store.get("basket", "1") is not None
    assert await store.measure("basket", "1")
    assert await store.replace("basket", "1", b"b" * 9, version=0, payer="ann")
    assert len(await store.list_owned("basket", "ann")) == 71
    assert len(await store.list_heads("basket", "ann")) == 71
    assert await store.delete("basket", "1", payer="ann")
    assert await store.delete("basket", "short")
    assert await store.use_nonce(make_nonce(), 60)
    assert await store.hold("lease", "me", 60)
    assert await asyncio.to_thread(store.renew, "lease", "me", 60)
    await store.release("lease", "me")
    assert await store.switch("off", "tool", on=True)
    assert await store.list_members("off") == {"tool"}
    assert await store.switch("off", "tool", on=False)
    await store.publish("topic", b"data")
    assert await SharedWindows(store).hit("a", 1, 60) == 0
    assert await SharedWindows(store).hit("a", 1, 60) > 0
    await _use_tasks(StreamEngine(store, idle=1))


async def _use_tasks(engine: StreamEngine) -> None:
    worked = asyncio.Event()

    async def work(_task: str) -> bool:
        worked.set()
        return True

    await engine.submit(secrets.token_urlsafe(32))
    async with engine.run(work, 5.0):
        await asyncio.wait_for(worked.wait(), 60)
