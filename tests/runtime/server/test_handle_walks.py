"""Random walks over handles, checked by a small model, in memory with a fake clock and in Redis."""

from __future__ import annotations

import asyncio
import secrets
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any, TypeVar

import pytest
from hypothesis import HealthCheck, seed, settings
from hypothesis import strategies as st
from hypothesis.stateful import Bundle, RuleBasedStateMachine, initialize, rule, run_state_machine_as_test

import redis_server
from stubwright_runtime.server.core.principal import Principal
from stubwright_runtime.server.features.handles import (
    Handle,
    HandleRegistry,
    Handles,
    HandleScope,
    StaleHandle,
    TooManyHandles,
    UnknownHandle,
)
from stubwright_runtime.state.memory import MemoryStore
from stubwright_runtime.state.store import Store
from stubwright_runtime.state.stores import store_at

_T = TypeVar("_T")
Counts = Handle[Any, str]

TTL, IDLE, MOST = 0.9, 0.4, 3
DOUBT = 0.06
"""Seconds around an expiry during which Redis may or may not have deleted the key."""

PACKAGE: Any = SimpleNamespace(
    name="walk_mcp",
    manifest={
        "server": {"name": "walk"},
        "handles": {"count": {"state": {"type": "integer"}, "ttl": "900ms", "idle": "400ms", "most": MOST}},
    },
    tools={},
    feature=lambda _name, _module: None,
    asserts_formats=False,
    has_exact_formats=False,
)
PEOPLE = st.sampled_from(["ann", "bob"])


class Clock:
    """Time that passes when it is told to."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        self.now += seconds


class RealClock(Clock):
    """Time that passes."""

    def __call__(self) -> float:
        return time.monotonic()

    def wait(self, seconds: float) -> None:
        time.sleep(seconds)


@dataclass
class Kept:
    """The model's state of a handle."""

    owner: str
    state: int
    version: int
    end: float
    until: float


class Walk(RuleBasedStateMachine):
    """Handles of two people, and what there should be."""

    clock: Callable[[], Clock] = Clock
    place: Callable[[Clock], Store] = MemoryStore
    ids = Bundle("ids")
    reads = Bundle("reads")

    @initialize()
    def begin(self) -> None:
        self.time = type(self).clock()
        self.runner = asyncio.Runner()
        self.doubt = DOUBT
        self.store = type(self).place(self.time)
        lists = SimpleNamespace(by_name={"tools": {}})
        host: Any = SimpleNamespace(package=PACKAGE, store=self.store, scopes=None, lists=lists)
        self.registry = HandleRegistry(host, lambda tool, faults: pytest.fail(f"{tool.name}: {faults}"))
        self.model: dict[str, Kept] = {}

    def teardown(self) -> None:
        if hasattr(self, "runner"):
            if self.store.pool is not None:
                self.run(self.store.pool.disconnect())
            self.runner.close()

    def run(self, work: Coroutine[Any, Any, _T]) -> _T:
        began = self.time()
        try:
            return self.runner.run(work)
        finally:
            self.doubt = max(self.doubt, DOUBT + self.time() - began)

    def of(self, who: str) -> Handles[Any, str]:
        bound = HandleScope(self.registry, Principal("token", issuer="https://a", subject=who), lambda _: None)
        return Handles(bound, "count", None)

    def found(self, who: str, one: str, *, did: bool) -> Kept | None:
        """What the model has of a handle; where it is in doubt, what really was so."""
        kept = self.model.get(one)
        if kept is None or kept.owner != who:
            return None
        if abs(self.time() - kept.until) < self.doubt and isinstance(self.time, RealClock):
            return kept if did else None
        return kept if self.time() < kept.until else None

    def use(self, kept: Kept) -> None:
        kept.until = min(kept.end, self.time() + IDLE)

    @rule(target=ids, who=PEOPLE, state=st.integers(0, 9))
    def create(self, who: str, state: int) -> str:
        ends = [kept.until - self.time() for kept in self.model.values() if kept.owner == who]
        sure, perhaps = (sum(left > doubt for left in ends) for doubt in (self.doubt, -self.doubt))
        try:
            one = self.run(self.of(who).create(state))
        except TooManyHandles:
            assert perhaps >= MOST
            return ""
        assert sure < MOST
        assert one not in self.model
        self.model[one] = Kept(who, state, 0, self.time() + TTL, self.time() + IDLE)
        return one

    @rule(target=reads, who=PEOPLE, one=ids)
    def get(self, who: str, one: str) -> Counts | None:
        handle = None
        with suppress(UnknownHandle):
            handle = self.run(self.of(who).get(one))
        kept = self.found(who, one, did=handle is not None)
        assert (handle is None) == (kept is None)
        if handle is not None and kept is not None:
            assert (handle.id, handle.state, handle.version) == (one, kept.state, kept.version)
            self.use(kept)
        return handle

    @rule(target=reads, who=PEOPLE, read=reads, state=st.integers(0, 9))
    def update(self, who: str, read: Counts | None, state: int) -> Counts | None:
        if read is None:
            return None
        written, error = None, None
        try:
            written = self.run(self.of(who).update(read, state))
        except (StaleHandle, UnknownHandle) as caught:
            error = caught
        kept = self.found(who, read.id, did=not isinstance(error, UnknownHandle))
        if kept is None:
            assert isinstance(error, UnknownHandle)
            return None
        self.use(kept)
        assert isinstance(error, StaleHandle) == (kept.version != read.version)
        if written is not None:
            kept.state, kept.version = state, kept.version + 1
            assert (written.state, written.version) == (state, kept.version)
        return written

    @rule(who=PEOPLE, one=ids)
    def delete(self, who: str, one: str) -> None:
        gone = self.run(self.of(who).delete(one))
        assert gone == (self.found(who, one, did=gone) is not None)
        if gone:
            del self.model[one]

    @rule(seconds=st.sampled_from([0.1, 0.25, 0.5]))
    def wait(self, seconds: float) -> None:
        self.time.wait(seconds)


@pytest.mark.long
def test_walks_in_memory() -> None:
    run_state_machine_as_test(Walk, settings=settings(max_examples=30, stateful_step_count=40, database=None))


@pytest.mark.long
def test_walks_in_redis(shared_redis: redis_server.RedisServer) -> None:
    @seed(secrets.randbits(64))  # new walks in each run, also where it fixes the seeds of others, as `make verify` does
    class InRedis(Walk):
        clock = RealClock

        @staticmethod
        def place(_clock: Clock) -> Store:
            return store_at(f"{shared_redis.url}?prefix={secrets.token_hex(8)}", PACKAGE)

    run_state_machine_as_test(
        InRedis,
        settings=settings(
            max_examples=4,
            stateful_step_count=20,
            database=None,
            suppress_health_check=[*HealthCheck],
        ),
    )
