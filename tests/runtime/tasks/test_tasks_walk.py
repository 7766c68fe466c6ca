"""Random walks over tasks: they are created, run, asked for input, answered, cancelled, expire, and their runners die.

A small model checks the ledger. The tests do not wait: time is a number, and callbacks are called directly. In Redis,
records do not expire meanwhile; instead, processes end and others continue.
"""

from __future__ import annotations

import asyncio
import secrets
from collections.abc import Coroutine
from types import SimpleNamespace
from typing import Any, ClassVar, TypeVar

import hypothesis.strategies as st
import pytest
from hypothesis import settings
from hypothesis.stateful import Bundle, RuleBasedStateMachine, consumes, invariant, rule, run_state_machine_as_test

import redis_server
from stubwright_runtime.server.core.principal import Principal
from stubwright_runtime.state.memory import MemoryStore
from stubwright_runtime.state.stores import store_at
from stubwright_runtime.tasks.records import OVER, Task
from stubwright_runtime.tasks.store import TaskStore

T = TypeVar("T")

PACKAGE: Any = SimpleNamespace(name="walk_mcp", manifest={"server": {"name": "walk"}})
MOST = 3
OWNERS = st.sampled_from(["ada", "bob"])
NAMES = st.lists(st.sampled_from(["who", "pet", "sum"]), min_size=1, unique=True)


class Model:
    """The expected state of one task."""

    def __init__(self, owner: str, end: float) -> None:
        self.owner, self.end = owner, end
        self.status = "working"
        self.asked: list[str] = []
        self.answers: dict[str, object] = {}
        self.result: object = None


class Walk(RuleBasedStateMachine):
    """The walk."""

    tasks = Bundle("tasks")

    def __init__(self) -> None:
        super().__init__()
        self.loop = asyncio.new_event_loop()
        self.time = 1000.0
        self.task_store = self.opened()
        self.models: dict[str, Model] = {}
        self.keys: dict[str, list[str]] = {}
        self.count = 0

    def opened(self) -> TaskStore:
        """The ledger of a process that starts now."""
        return TaskStore(MemoryStore(lambda: self.time), lambda: self.time)

    def teardown(self) -> None:
        self.loop.close()

    def done(self, work: Coroutine[Any, Any, T]) -> T:
        return self.loop.run_until_complete(work)

    def live(self, owner: str | None = None) -> dict[str, Model]:
        return {
            name: one
            for name, one in self.models.items()
            if one.end > self.time and (owner is None or one.owner == owner)
        }

    @rule(target=tasks, owner=OWNERS, ttl=st.sampled_from([10.0, 100.0]))
    def make(self, owner: str, ttl: float) -> str:
        self.count += 1
        name = f"t{self.count}"
        task = Task(
            id=name,
            owner=owner,
            tool="work",
            arguments={},
            revision="2026-07-28",
            transport="memory",
            call_id="c",
            trace={},
            client=None,
            principal=Principal("token", subject=owner),
            capabilities=None,
            created=self.time,
            updated=self.time,
            ttl=ttl,
            poll=1.0,
        )
        under_way = sum(one.status not in OVER for one in self.live(owner).values())
        assert self.done(self.task_store.create(task, MOST)) == (under_way < MOST)
        if under_way < MOST:
            self.models[name] = Model(owner, self.time + ttl)
            self.keys[name] = []
        return name

    @rule(name=tasks, asked=NAMES)
    def ask(self, name: str, asked: list[str]) -> None:
        """The run asks, and ends."""
        model = self.live().get(name)

        def wait_for(now: Task) -> Task | None:
            return now.wait_for({one: {"method": one} for one in asked}) if now.status == "working" else None

        made = self.done(self.task_store.change(name, wait_for))
        assert (made is not None) == (model is not None and model.status == "working")
        if model is not None and made is not None:
            model.status, model.asked = "input_required", list(asked)
            assert not {*made.pending} & {*self.keys[name]}, "a key stands for two requests"
            self.keys[name] += made.pending

    @rule(name=tasks, index=st.integers(0, 9), value=st.integers())
    def answer(self, name: str, index: int, value: int) -> None:
        """The client answers one of all questions that there ever were."""
        if not self.keys.get(name):
            return
        model, key = self.live().get(name), self.keys[name][index % len(self.keys[name])]
        before = self.done(self.task_store.find(name))
        question = None if before is None else before.pending.get(key)
        made = self.done(self.task_store.change(name, lambda now: now.answer({key: value, "unknown": 0})))
        assert (made is not None) == (model is not None and question is not None)
        if model is not None and question is not None:
            model.answers[question.name] = value
            model.asked.remove(question.name)
            model.status = "input_required" if model.asked else "working"

    @rule(name=tasks, result=st.integers(), is_late=st.booleans())
    def end(self, name: str, result: int, is_late: bool) -> None:
        """End the run with a result, which is discarded if the task was cancelled meanwhile."""
        task, model = self.done(self.task_store.find(name)), self.live().get(name)
        assert (task is None) == (model is None)
        if task is None or model is None:
            return
        if is_late:
            self.cancel(name)
        said = {"content": [], "number": result}
        made = self.done(self.task_store.complete(task, said, lambda now, key: now.move("completed", result=key)))
        assert (made is not None) == (model.status not in OVER)
        if made is not None:
            model.status, model.result = "completed", said

    @rule(name=tasks)
    def fail(self, name: str) -> None:
        model = self.live().get(name)
        made = self.done(self.task_store.change(name, lambda now: now.move("failed", error={"code": 1})))
        assert (made is not None) == (model is not None and model.status not in OVER)
        if model is not None and made is not None:
            model.status = "failed"

    @rule(name=tasks)
    def cancel(self, name: str) -> None:
        model = self.live().get(name)
        made = self.done(self.task_store.change(name, lambda now: now.move("cancelled")))
        assert (made is not None) == (model is not None and model.status not in OVER)
        if model is not None and made is not None:
            model.status = "cancelled"

    @rule(seconds=st.sampled_from([0.5, 5.0, 60.0]))
    def wait(self, seconds: float) -> None:
        self.time += seconds

    @rule(name=consumes(tasks))
    def forget(self, name: str) -> None:
        """Stop polling it; it still exists until it expires."""
        assert (self.done(self.task_store.find(name)) is not None) == (name in self.live())

    @invariant()
    def all_is_as_it_must_be(self) -> None:
        for name, model in self.models.items():
            task = self.done(self.task_store.find(name))
            assert (task is not None) == (model.end > self.time)
            if task is not None:
                assert task.status == model.status
                assert task.answers == ({} if model.status in OVER else model.answers)
                assert self.done(self.task_store.get_result(task)) == model.result
                if model.status == "input_required":
                    assert sorted(one.name for one in task.pending.values()) == sorted(model.asked)
        for owner in ("ada", "bob"):
            listed = [task.id for task in self.done(self.task_store.list_owned(owner))]
            assert sorted(listed) == sorted(self.live(owner))


def test_a_random_walk_over_tasks() -> None:
    run_state_machine_as_test(Walk, settings=settings(max_examples=20, stateful_step_count=40))


class SharedWalk(Walk):
    """The walk over tasks in Redis."""

    server: ClassVar[str]

    def __init__(self) -> None:
        self.url = f"{self.server}?prefix={secrets.token_hex(8)}"
        super().__init__()

    def opened(self) -> TaskStore:
        self.store = store_at(self.url, PACKAGE)
        return TaskStore(self.store, lambda: self.time)

    def teardown(self) -> None:
        self.done(self.store.pool.disconnect())
        super().teardown()

    @rule()
    def wait(self) -> None:
        """The process ends, and another goes on."""
        self.done(self.store.pool.disconnect())
        self.task_store = self.opened()


@pytest.mark.long
def test_a_random_walk_over_tasks_in_redis(shared_redis: redis_server.RedisServer) -> None:
    kind = type("Walk", (SharedWalk,), {"server": shared_redis.url})
    run_state_machine_as_test(kind, settings=settings(max_examples=4, stateful_step_count=30))
