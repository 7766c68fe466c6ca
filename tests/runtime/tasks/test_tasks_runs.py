"""The runner of a task, and tasks whose runner dies, stops, or loses the store; also over stdio."""

from __future__ import annotations

import asyncio
import importlib
import json
import sqlite3
import threading
import time
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from operator import methodcaller
from typing import TYPE_CHECKING, Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import StatusCode

import amounts
import tasked
from packages import generate
from stubwright_runtime.server.app.core import Core
from stubwright_runtime.server.core.principal import Principal, make_local
from stubwright_runtime.state import leases
from stubwright_runtime.state.budget import Budget, BudgetExceeded
from stubwright_runtime.state.memory import MemoryStore
from stubwright_runtime.state.store import Record
from stubwright_runtime.tasks import runs, tracing
from stubwright_runtime.tasks.records import OVER, Question, Status, Task
from stubwright_runtime.tasks.store import TaskStore
from task_wire import EXTENSION, HANDSHAKE, STATELESS, Wire, in_memory, over_stdio
from tasked import MANIFEST, Clock, Gate, Handlers, call_params, first

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable
    from pathlib import Path
    from types import ModuleType

pytestmark = pytest.mark.anyio

package = tasked.package


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


TASKS: dict[str, Any] = {"elicitation": {}, "extensions": {EXTENSION: {}}}
STATUSES: tuple[Status, ...] = ("working", "input_required", "completed", "failed", "cancelled")


def server(package: ModuleType, store: Any, handlers: Any = None, **more: Any) -> Any:
    """A server with this store, which others may have, too."""
    sdk = importlib.import_module("stubwright_runtime.server.package_server")
    features = importlib.import_module("stubwright_runtime.server.app.composition")
    registry = importlib.import_module(f"{package.__name__}.registry").PACKAGE
    return sdk.PackageServer(
        Core(registry, handlers or Handlers(), features.list_features(registry), make_local(()), store, **more)
    )


def store_of(package: ModuleType) -> Any:
    """A store as the package has it."""
    return importlib.import_module("stubwright_runtime.state.memory").MemoryStore()


def task(**more: Any) -> Task:
    """A task that was just made."""
    said: dict[str, Any] = {
        "id": "t",
        "owner": "o",
        "tool": "work",
        "arguments": {"x": 1},
        "revision": HANDSHAKE,
        "transport": "memory",
        "call_id": "c",
        "trace": {"traceparent": "00-1-2-01"},
        "client": ("test", "1"),
        "principal": Principal("token", "i", "s", "c", frozenset({"b", "a"}), {"k": [1]}),
        "capabilities": {"elicitation": {}},
        "created": 1.5,
        "updated": 1.5,
        "ttl": 60.0,
        "poll": 1.0,
    }
    return Task(**{**said, **more})


@pytest.mark.parametrize("now", STATUSES)
@pytest.mark.parametrize("then", STATUSES)
async def test_a_task_goes_the_ways_that_there_are(now: Status, then: Status) -> None:
    if now in OVER:
        with pytest.raises(ValueError, match=f"a task cannot change from {now} to {then}"):
            task(status=now).move(then)
    else:
        assert task(status=now).move(then).status == then


async def test_a_task_comes_back_from_the_store_as_it_was() -> None:
    one = task(
        status="input_required",
        message="é\u2028",
        pending={"k": Question("who", {"method": "m", "params": {"a": [None]}})},
        used=("k",),
        error={"code": 1, "message": "m"},
        answers={"who": {"action": "decline"}},
        done={"once": 1},
        tries={"who": 2},
    )
    assert Task.load(one.dump()) == one
    assert "claims" in json.loads(one.dump())["principal"]


class Slow(MemoryStore):
    """A store in which others come between reading and writing."""

    async def get(self, kind: str, key: str) -> Record | None:
        found = await super().get(kind, key)
        await asyncio.sleep(0)
        return found


async def test_what_is_over_never_changes_whoever_tries() -> None:
    task_store = TaskStore(Slow())
    assert await task_store.create(task(), 5)
    made = await asyncio.gather(*(task_store.change("t", methodcaller("move", to)) for to in STATUSES[2:]))
    assert sum(each is not None for each in made) == 1
    found = await task_store.find("t")
    assert found in made


async def test_a_change_by_a_slow_clock_does_not_go_back() -> None:
    now = [20.0]
    task_store = TaskStore(MemoryStore(), lambda: now[0])
    assert await task_store.create(task(updated=10.0), 5)
    updated = []
    for now[0] in (20.0, 15.0, 30.0):
        changed = await task_store.change("t", methodcaller("move", "working"))
        assert changed is not None
        updated.append(changed.updated)
    assert updated == [20.0, 20.0, 30.0]


async def test_a_task_that_does_not_fit_is_no_part_of_what_its_caller_is_told() -> None:
    store, new = MemoryStore(budget=Budget(each=4000)), task(ttl=5.0)
    assert await store.create("basket", "a", bytes(1000), owner="ann", ttl=60, payer=new.principal.key)
    with pytest.raises(BudgetExceeded, match=r"You have 1\.9 KiB .* Try again in 60 seconds"):
        await TaskStore(store).create(new, 5)
    assert len(store) == 1


async def test_changes_at_once_are_all_kept() -> None:
    store = Slow()
    task_stores = TaskStore(store), TaskStore(store)
    assert await task_stores[0].create(task(), 5)

    def done(key: str) -> Callable[[Task], Task]:
        return lambda now: now.move("working", done={**now.done, key: True})

    await asyncio.gather(*(task_stores[number % 2].change("t", done(str(number))) for number in range(30)))
    found = await task_stores[1].find("t")
    assert found is not None
    assert len(found.done) == 30


class Filled(MemoryStore):
    """A store whose budget is used up to the last byte as soon as there is a task."""

    async def create(self, kind: str, key: str, data: bytes, **more: Any) -> bool:
        is_new = await super().create(kind, key, data, **more)
        if kind == "task":
            for size in range(8000, 0, -1):
                with suppress(BudgetExceeded):
                    return await super().create("basket", "rest", bytes(size), **{**more, "head": b""}) and is_new
        return is_new


async def test_a_task_for_whose_run_there_is_no_room_fails(
    package: ModuleType, caplog: pytest.LogCaptureFixture
) -> None:
    async with in_memory(server(package, Filled(budget=Budget(each=8000))), STATELESS, TASKS) as wire:
        said = await wire.until(await made(wire, "work"), "failed")
    assert said["error"]["message"].startswith(
        "work cannot start because its run cannot be stored. You have 7.8 KiB of "
    )
    assert not [record for record in caplog.records if record.exc_info]


async def made(wire: Wire, name: str, x: int = 1) -> str:
    said = await wire("tools/call", **call_params(name, x))
    assert said["resultType"] == "task", said
    found: str = said["taskId"]
    return found


@asynccontextmanager
async def replicas(package: ModuleType, *handlers: Any) -> AsyncIterator[list[Wire]]:
    """Clients of servers that share a store, one each."""
    store = store_of(package)
    async with (
        in_memory(server(package, store, handlers[0]), STATELESS, TASKS) as one,
        in_memory(server(package, store, handlers[1]), STATELESS, TASKS) as other,
    ):
        yield [one, other]


async def test_any_process_answers_for_a_task(package: ModuleType) -> None:
    async def asks(_args: Any, ctx: Any) -> str:
        return str((await ctx.ask.who()).name)

    here, there = Handlers(ask=asks), Handlers(ask=asks)
    async with replicas(package, here, there) as (one, other):
        name = await made(one, "ask")
        said = await other.until(name, "input_required")
        [key] = said["inputRequests"]
        answer = {key: {"action": "accept", "content": {"name": "Ada"}}}
        await other("tasks/update", taskId=name, inputResponses=answer)
        assert first((await one.until(name, "completed"))["result"]) == "Ada"
    assert (here.runs, there.runs) == (["ask"], ["ask"])  # the client with the answer continues


@pytest.mark.parametrize("style", ["later", "at_once"])
async def test_a_task_is_cancelled_by_another_process(package: ModuleType, style: str) -> None:
    gate = Gate()
    async with replicas(package, Handlers(work=getattr(gate, style)), Handlers()) as (one, other):
        name = await made(one, "work")
        assert await asyncio.to_thread(gate.begun.wait, 60)
        await other("tasks/cancel", taskId=name)
        assert (await one("tasks/get", taskId=name))["status"] == "cancelled"
        assert await asyncio.to_thread(gate.cancelled.wait, 60)


async def died(package: ModuleType, store: Any, tool: str) -> str:
    """Create a task whose runner died."""
    found = server(package, store, Handlers(**{tool: Gate().later}))
    async with in_memory(found, STATELESS, TASKS) as wire:
        name = await made(wire, tool)
        await found.core.tasks.task_store.change(name, lambda now: now.move("working", done={"once": "kept"}))
        task_store = found.core.tasks.task_store
        before = await task_store.find(name)
        assert before is not None
    await store.create("task", name, before.move("working", done={"once": "kept"}).dump(), owner=before.owner, ttl=60)
    return name


@pytest.mark.parametrize(("tool", "status"), [("again", "completed"), ("work", "failed")])
async def test_a_task_whose_runner_died_is_run_again_only_where_that_is_harmless(
    package: ModuleType, tool: str, status: str
) -> None:
    async def works(_args: Any, ctx: Any) -> str:
        return str(await ctx.once("once", lambda: "made anew"))

    store = store_of(package)
    name = await died(package, store, tool)
    handlers = Handlers(**{tool: works})
    other = server(package, store, handlers)
    async with in_memory(other, STATELESS, TASKS) as wire:
        lease = f"task:{name}"
        assert await store.hold(lease, "somebody", 60)
        assert await other.core.tasks.work(name) is False  # somebody has it
        assert (await wire("tasks/get", taskId=name))["status"] == "working"
        await store.release(lease, "somebody")
        assert await other.core.tasks.work(name) is True
        said = await wire("tasks/get", taskId=name)
        assert said["status"] == status
        if tool == "again":
            assert (first(said["result"]), handlers.runs) == ("kept", ["again"])
        else:
            assert (said["error"]["code"], handlers.runs) == (-32603, [])
            assert "died" in said["statusMessage"]
        assert await other.core.tasks.work(name) is True  # there is nothing left to do
        assert len(handlers.runs) <= 1
        assert await store.hold(lease, "somebody", 60)  # it was given back


@pytest.mark.parametrize(("deaths", "status"), [(1, "completed"), (2, "failed")])
async def test_a_task_that_kills_its_runners_is_not_run_for_ever(package: ModuleType, deaths: int, status: str) -> None:
    async def works(_args: Any, _ctx: Any) -> str:
        return "done"

    store = store_of(package)
    name = await died(package, store, "again")
    handlers = Handlers(again=works)
    other = server(package, store, handlers)
    arguments = {"note": "to keep"}
    await other.core.tasks.task_store.change(name, lambda now: replace(now, deaths=deaths, arguments=arguments))
    assert await other.core.tasks.work(name) is True
    task = await other.core.tasks.task_store.find(name)
    assert (task.status, task.deaths) == (status, deaths + 1)
    given_up = await other.core.tasks.task_store.list_abandoned()
    assert [(found.id, found.arguments) for found in given_up] == ([(name, arguments)] if status == "failed" else [])
    assert task.arguments == (arguments if status == "failed" else {})
    assert handlers.runs == (["again"] if status == "completed" else [])


@pytest.mark.parametrize(("tool", "status"), [("again", "completed"), ("work", "failed")])
async def test_whoever_looks_finds_that_a_runner_died(
    package: ModuleType, tool: str, status: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = store_of(package)
    name = await died(package, store, tool)
    other = server(package, store, Handlers())
    async with in_memory(other, STATELESS, TASKS) as wire:
        assert (await wire("tasks/get", taskId=name))["status"] == "working"  # another runner had it a moment ago
        now = other.core.tasks.task_store.now()
        monkeypatch.setattr(other.core.tasks.task_store, "now", lambda: now + 11)
        assert await store.hold(f"task:{name}", "somebody", 60)
        await wire("tasks/get", taskId=name)
        await asyncio.sleep(0.05)
        assert (await wire("tasks/get", taskId=name))["status"] == "working"  # and still has it
        await store.release(f"task:{name}", "somebody")
        store._leases.pop(f"task-look:{name}")
        await wire.until(name, status)


async def test_a_task_that_nobody_was_told_of_is_found(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    found = package.build_server(Handlers())

    async def lost(_name: str) -> None:
        """A word that goes nowhere."""

    async with in_memory(found, STATELESS, TASKS) as wire:
        with monkeypatch.context() as patch:
            patch.setattr(found.core.tasks.engine, "submit", lost)
            name = await made(wire, "work", 3)
        await asyncio.sleep(0.05)
        assert (await wire("tasks/get", taskId=name))["status"] == "working"
        now = found.core.tasks.task_store.now()
        monkeypatch.setattr(found.core.tasks.task_store, "now", lambda: now + 11)
        assert first((await wire.until(name, "completed"))["result"]) == "3"


@pytest.mark.parametrize(("tool", "status"), [("again", "working"), ("work", "failed")])
async def test_a_server_that_stops_hands_back_what_may_be_repeated(package: ModuleType, tool: str, status: str) -> None:
    gate, store = Gate(), store_of(package)
    found = server(package, store, Handlers(**{tool: gate.later}))
    async with in_memory(found, STATELESS, TASKS) as wire:
        name = await made(wire, tool)
        assert await asyncio.to_thread(gate.begun.wait, 60)
    assert gate.cancelled.is_set()
    left = await found.core.tasks.task_store.find(name)
    assert (left.status, left.run is None) == (status, tool == "again")


async def test_whoever_loses_the_lease_stops_and_changes_nothing(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runs, "RENEWAL", 0.002)
    gate, store = Gate(), store_of(package)
    found = server(package, store, Handlers(work=gate.later))
    async with in_memory(found, STATELESS, TASKS) as wire:
        name = await made(wire, "work")
        assert await asyncio.to_thread(gate.begun.wait, 60)
        [held] = [lease for lease in store._leases if name in lease]
        store._leases[held] = ("somebody", store._clock() + 60)
        assert await asyncio.to_thread(gate.cancelled.wait, 60)
        gate.go.set()
        await asyncio.sleep(0.05)
        assert (await wire("tasks/get", taskId=name))["status"] == "working"


async def test_a_lease_is_renewed_while_the_handler_blocks_the_event_loop(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RENEWAL", 0.002)
    store, renewed, has_blocked = store_of(package), list[float](), threading.Event()

    async def block(_args: Any, ctx: Any) -> str:
        end = time.monotonic() + 60
        for _ in range(3):
            clock.now += 6
            while store._leases[f"task:{ctx.task_id}"][1] < clock.now + 10:
                assert time.monotonic() < end
                has_blocked.wait(0.002)
            renewed.append(clock.now)
        return "done"

    found = server(package, store, Handlers(work=block))
    clock = Clock(found)
    async with in_memory(found, STATELESS, TASKS) as wire:
        await wire.until(await made(wire, "work"), "completed")
    assert len(renewed) == 3


async def test_the_lease_of_a_tool_is_as_long_as_its_manifest_says(package: ModuleType) -> None:
    gate, store = Gate(), store_of(package)
    found = server(package, store, Handlers(few=gate.later))
    clock = Clock(found)
    async with in_memory(found, STATELESS, TASKS) as wire:
        name = await made(wire, "few")
        assert await asyncio.to_thread(gate.begun.wait, 60)
        async with asyncio.timeout(60):
            while store._leases[f"task:{name}"][1] != clock.now + 60:  # noqa: ASYNC110 - until the thread renews it
                await asyncio.sleep(0.005)
        gate.go.set()
        await wire.until(name, "completed")


async def test_an_effect_before_a_death_has_the_same_key_in_the_next_run(package: ModuleType) -> None:
    keys, store = list[str](), store_of(package)

    async def upload(_args: Any, ctx: Any) -> str:
        async def put(key: str) -> str:
            keys.append(key)
            await blocked.wait() if len(keys) == 1 else None
            return "up"

        return str(await ctx.once("upload", put))

    blocked = asyncio.Event()
    dying = server(package, store, Handlers(again=upload))
    other = server(package, store, Handlers(again=upload))
    async with in_memory(dying, STATELESS, TASKS) as wire, in_memory(other, STATELESS, TASKS):
        name = await made(wire, "again")
        async with asyncio.timeout(60):
            while not keys:  # noqa: ASYNC110 - until the effect exists
                await asyncio.sleep(0.005)
        assert store._leases.pop(f"task:{name}")  # the process died before it stored the result
        assert await other.core.tasks.work(name)
        assert first((await wire("tasks/get", taskId=name))["result"]) == "up"
        await wire.until(await made(wire, "again"), "completed")
    assert keys[0] == keys[1] != keys[2]
    assert len(keys) == 3
    assert name not in keys[0]


async def test_a_step_that_returned_is_not_repeated_if_the_process_dies_later(package: ModuleType) -> None:
    store, steps, returned = store_of(package), list[str](), asyncio.Event()

    async def upload(_args: Any, ctx: Any) -> str:
        def put() -> int:
            steps.append("up")
            return len(steps)

        result = await ctx.once("upload", put)
        if not returned.is_set():
            returned.set()
            await asyncio.sleep(60)
        return f"upload {result}"

    dying, other = (server(package, store, Handlers(again=upload)) for _ in range(2))
    async with in_memory(dying, STATELESS, TASKS) as wire, in_memory(other, STATELESS, TASKS):
        name = await made(wire, "again")
        await returned.wait()
        assert store._leases.pop(f"task:{name}")
        assert await other.core.tasks.work(name)
        assert first((await wire("tasks/get", taskId=name))["result"]) == "upload 1"
    assert steps == ["up"]


@pytest.mark.parametrize("is_committed", [True, False])
async def test_an_effect_in_a_transaction_is_made_once_whenever_its_process_dies(
    package: ModuleType, tmp_path: Path, is_committed: bool
) -> None:
    store, firsts, blocked = store_of(package), list[bool](), asyncio.Event()
    database = sqlite3.connect(tmp_path / "database")
    database.execute("CREATE TABLE stubwright_once (key TEXT PRIMARY KEY)")
    database.execute("CREATE TABLE orders (name TEXT)")

    async def order(_args: Any, ctx: Any) -> str:
        with suppress(asyncio.CancelledError):
            if await ctx.once_in(database, "order"):
                database.execute("INSERT INTO orders VALUES ('a')")
                firsts.append(True)
            if len(firsts) > 1 or is_committed:
                database.commit()
            if not blocked.is_set():
                database.rollback()
                blocked.set()
                await asyncio.sleep(60)
        return "ordered"

    dying, other = (server(package, store, Handlers(again=order)) for _ in range(2))
    async with in_memory(dying, STATELESS, TASKS) as wire, in_memory(other, STATELESS, TASKS):
        name = await made(wire, "again")
        await blocked.wait()
        assert store._leases.pop(f"task:{name}")
        assert await other.core.tasks.work(name)
        assert first((await wire("tasks/get", taskId=name))["result"]) == "ordered"
        assert database.execute("SELECT count(*) FROM orders").fetchone() == (1,)
        assert len(firsts) == (1 if is_committed else 2)
        await wire.until(await made(wire, "again"), "completed")
    assert database.execute("SELECT count(*) FROM orders").fetchone() == (2,), "another task has another key"


@pytest.mark.parametrize(("tool", "retries"), [("again", 1), ("work", 0)])
async def test_deaths_and_retries_are_metrics(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch, tool: str, retries: int
) -> None:
    reader = InMemoryMetricReader()
    provider = MeterProvider([reader])
    for create in (tracing._create_waiting, tracing._create_age, tracing._create_counter):
        create.cache_clear()
    monkeypatch.setattr(tracing, "is_observed", lambda: True)
    monkeypatch.setattr("opentelemetry.metrics.get_meter", provider.get_meter)
    store = store_of(package)
    name = await died(package, store, tool)
    other = server(package, store, Handlers())
    async with in_memory(other, STATELESS, TASKS):
        await other.core.tasks.work(name)
    recorded = reader.get_metrics_data()
    assert recorded is not None
    data = json.loads(recorded.to_json())
    values = {
        metric["name"]: {point["attributes"]["gen_ai.tool.name"]: point for point in metric["data"]["data_points"]}
        for metric in data["resource_metrics"][0]["scope_metrics"][0]["metrics"]
    }
    assert values["stubwright.task.waiting"][tool]["value"] == 0
    assert values["stubwright.task.age"][tool]["count"] == 1 + retries
    assert values["stubwright.task.deaths"][tool]["value"] == 1
    assert ("stubwright.task.retries" in values) == bool(retries)
    for create in (tracing._create_waiting, tracing._create_age, tracing._create_counter):
        create.cache_clear()


async def test_a_run_that_was_replaced_cannot_write_its_result(package: ModuleType) -> None:
    attempts = dict[str, int]()
    gate, store = Gate(), store_of(package)

    async def stand_still(args: Any, ctx: Any) -> str:
        attempts["first"] = ctx.attempt
        return await gate.later(args, ctx)

    async def replace_run(_args: Any, ctx: Any) -> str:
        attempts["second"] = ctx.attempt
        return "second"

    paused = server(package, store, Handlers(again=stand_still))
    other = server(package, store, Handlers(again=replace_run))
    async with in_memory(paused, STATELESS, TASKS) as wire, in_memory(other, STATELESS, TASKS):
        name = await made(wire, "again")
        assert await asyncio.to_thread(gate.begun.wait, 60)
        assert store._leases.pop(f"task:{name}")  # the machine stood still for longer than the lease
        assert await other.core.tasks.work(name)
        gate.go.set()
        async with asyncio.timeout(60):
            while paused.core.tasks._runs._running:  # noqa: ASYNC110 - until the first run has ended, too
                await asyncio.sleep(0.005)
        assert first((await wire("tasks/get", taskId=name))["result"]) == "second"
    assert attempts == {"first": 1, "second": 2}


async def test_an_expired_task_ends_its_handler(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "RENEWAL", 0.005)
    gate = Gate()
    async with in_memory(server(package, store_of(package), Handlers(few=gate.later)), STATELESS, TASKS) as wire:
        await made(wire, "few")
        assert await asyncio.to_thread(gate.cancelled.wait, 60)


class Losing:
    """A store that can be lost for a while."""

    def __init__(self, store: Any, lost: type[Exception]) -> None:
        self._store, self._lost = store, lost
        self.is_lost = False

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._store, name)
        if not asyncio.iscoroutinefunction(found):
            return found

        async def asked(*arguments: Any, **more: Any) -> Any:
            if self.is_lost:
                raise self._lost("the store is away")
            return await found(*arguments, **more)

        return asked


def losing(package: ModuleType) -> Losing:
    return Losing(store_of(package), importlib.import_module("stubwright_runtime.state.store").StateLost)


async def test_while_the_store_is_lost_it_is_said(package: ModuleType) -> None:
    store, handlers = losing(package), Handlers()
    async with in_memory(server(package, store, handlers), STATELESS, TASKS) as wire:
        name = await made(wire, "work")
        await wire.until(name, "completed")
        store.is_lost = True
        text = "The server's store cannot be reached; the request had no effect. Try again in 5 seconds."
        lost = {"code": -32603, "message": text}
        for method in ("tasks/get", "tasks/cancel", "tasks/update"):
            assert await wire(method, taskId=name, inputResponses={}) == {"error": lost}
        refused = await wire("tools/call", **call_params("work"))
        assert refused["isError"]
        assert first(refused) == text
        store.is_lost = False
        assert (await wire("tasks/get", taskId=name))["status"] == "completed"
        assert first((await wire.until(await made(wire, "work", 8), "completed"))["result"]) == "8"
    assert handlers.runs == ["work", "work"]


async def test_an_end_is_kept_when_the_store_is_back(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runs, "RENEWAL", 0.002)
    store, gate = losing(package), Gate()
    async with in_memory(server(package, store, Handlers(work=gate.later)), STATELESS, TASKS) as wire:
        name = await made(wire, "work")
        assert await asyncio.to_thread(gate.begun.wait, 60)
        store.is_lost = True
        await asyncio.sleep(0.1)
        gate.go.set()
        await asyncio.sleep(0.1)
        store.is_lost = False
        assert first((await wire.until(name, "completed"))["result"]) == "let go"


async def test_a_task_is_run_whose_taking_was_not_answered(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The store made the change and failed before its response: the task is alive, and runs once."""
    monkeypatch.setattr(importlib.import_module("stubwright_runtime.tasks.runs"), "_RETRY_INTERVAL", 0.01)
    store, handlers = store_of(package), Handlers()
    replace, lost = store.replace, importlib.import_module("stubwright_runtime.state.store").StateLost
    unanswered: list[bool] = []

    async def unheard(*arguments: Any, **more: Any) -> bool:
        is_done = await replace(*arguments, **more)
        if not unanswered:
            unanswered.append(is_done)
            raise lost("no answer")
        return bool(is_done)

    monkeypatch.setattr(store, "replace", unheard)
    async with in_memory(server(package, store, handlers), STATELESS, TASKS) as wire:
        await wire.until(await made(wire, "work"), "completed")
    assert (handlers.runs, unanswered) == (["work"], [True])


async def test_a_call_and_its_run_are_recorded_as_one(package: ModuleType) -> None:
    records: list[Any] = []
    has_begun = asyncio.Event()

    async def works(args: Any, ctx: Any) -> str:
        if args.x == 2:
            raise package.ToolError("no")
        if args.x == 3:
            has_begun.set()
            await asyncio.sleep(60)
        return "done"

    built = package.build_server(Handlers(work=works), audit=records.append)
    async with in_memory(built, STATELESS, TASKS) as wire:
        for x in (1, 2):
            await wire.until(await made(wire, "work", x), "completed")
        name = await made(wire, "work", 3)
        async with asyncio.timeout(60):
            await has_begun.wait()
            await wire("tasks/cancel", taskId=name)
            while len(records) < 6:  # noqa: ASYNC110 - another thread adds to it
                await asyncio.sleep(0.01)
    built.core.recorder.flush()
    found = [(one.id, one.outcome, one.tool, tuple(one.keys), one.principal, one.client) for one in records]
    ids = list(dict.fromkeys(one[0] for one in found))
    common = ("work", ("x",), "local", "test")
    assert [one for one in found if one[0] == ids[0]] == [(ids[0], "completed", *common)] * 2
    assert [one[1] for one in found if one[0] == ids[1]] == ["completed", "tool_error"]
    assert [one[1] for one in found if one[0] == ids[2]] == ["completed", "cancelled"]
    assert len(found) == 6


async def test_a_run_is_a_span_of_the_trace_of_its_call(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    parent = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    monkeypatch.setattr(
        importlib.import_module("stubwright_runtime.tasks.service"), "make_trace_headers", lambda: parent
    )

    async def works(args: Any, _ctx: Any) -> str:
        if args.x == 2:
            raise KeyError("the safe's code")
        return "done"

    async with in_memory(package.build_server(Handlers(work=works)), STATELESS, TASKS) as wire:
        for x in (1, 2):
            await wire.until(await made(wire, "work", x), "completed")
    runs = [span for span in exporter.get_finished_spans() if span.name == "task work"]
    assert [(span.status.status_code, len(span.events)) for span in runs] == [
        (StatusCode.UNSET, 0),
        (StatusCode.ERROR, 0),
    ]
    for span in runs:
        assert span.attributes is not None
        assert f"{span.context.trace_id:032x}" == "0af7651916cd43dd8448eb211c80319c"
        assert span.attributes["gen_ai.tool.name"] == "work"
        assert "safe" not in span.to_json()


HANDLERS = """
import asyncio

class Handlers:
    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        async def run(args, ctx):
            if name == "ask":
                return (await ctx.ask.who()).name
            if args.x == 60:
                await asyncio.sleep(60)
            return str(args.x)
        return run
"""


@pytest.mark.parametrize("revision", amounts.sample([HANDSHAKE, STATELESS], 1))
async def test_tasks_over_stdio(tmp_path: Path, revision: str) -> None:
    value = {**MANIFEST, "server": {"name": "piped", "version": "1"}}
    name = generate(tmp_path, {**value, "python": {"handlers": "handlers:Handlers"}})
    (tmp_path / "handlers.py").write_text(HANDLERS)
    is_stateless = revision == STATELESS
    more: dict[str, Any] = {} if is_stateless else {"task": {}}

    def answer(message: dict[str, Any]) -> dict[str, Any]:
        assert message["method"] == "elicitation/create"
        return {"action": "accept", "content": {"name": "Ada"}}

    async with over_stdio(name, tmp_path, revision, TASKS, answer) as wire:

        async def begun(tool: str, x: int = 1) -> str:
            said = await wire("tools/call", **call_params(tool, x, **more))
            found: str = said["taskId"] if is_stateless else said["task"]["taskId"]
            return found

        ask, long = await begun("ask"), await begun("work", 60)
        waiting = await wire.until(ask, "input_required")
        if is_stateless:
            [key] = waiting["inputRequests"]
            await wire("tasks/update", taskId=ask, inputResponses={key: answer({"method": "elicitation/create"})})
            assert first((await wire.until(ask, "completed"))["result"]) == "Ada"
        else:
            assert first(await wire("tasks/result", taskId=ask)) == "Ada"
            assert [one["taskId"] for one in (await wire("tasks/list"))["tasks"]] == [ask, long]
        await wire("tasks/cancel", taskId=long)
        assert (await wire("tasks/get", taskId=long))["status"] == "cancelled"
        await begun("work", 60)  # ends with the server
