"""Errors during store outages, in each failure mode of Redis: one message, no traceback."""

from __future__ import annotations

import asyncio
import contextlib
import importlib
import logging
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from functools import partial
from itertools import product
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
import redis as redis_library
import redis.asyncio

import amounts
import fake_redis
from fake_redis import HUNG, STATES, STOPPED, WELL, FakeRedis
from packages import generate, imported, manifest, tool
from stubwright_runtime.observability.scope import SCOPE, Scope
from stubwright_runtime.state import outages
from stubwright_runtime.state import redis as redis_store
from stubwright_runtime.state.nonces import make_nonce
from stubwright_runtime.state.outages import Outages, WaitBudget
from stubwright_runtime.state.store import StateLost, describe_lost_state, find_state_lost
from stubwright_runtime.values.contexts import ContextValue
from task_wire import EXTENSION, HANDSHAKE, STATELESS, Wire, in_memory
from tasked import first

pytestmark = pytest.mark.anyio

NOTHING = "The server's store cannot be reached; the request had no effect. Try again in 5 seconds."
UNKNOWN = (
    "The server's store cannot be reached; the request may have taken effect. "
    "Check its effects, and try again in 5 seconds."
)
TOLD = {NOTHING, UNKNOWN}

NAMED = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
BASKET = {"basket_id": {"type": "string", "x-handle": "basket"}}
OPTIONAL: dict[str, Any] = {"execution": {"taskSupport": "optional"}}
MANIFEST = manifest(
    [
        tool("limited", stubwright={"policy": {"rateLimit": "1000/minute"}}),
        tool("make", outputSchema={"type": "object", "properties": BASKET, "required": ["basket_id"]}),
        tool("show", BASKET),
        tool("switch"),
        tool("job", **OPTIONAL),
        tool("asking", **OPTIONAL, stubwright={"ask": {"who": {"message": "Who?", "schema": NAMED}}}),
        tool("pay", stubwright={"policy": {"confirm": True}}),
    ],
    name="away",
    handles={"basket": {"state": {"type": "object"}, "ttl": "1h", "idle": "10m"}},
    resources=[{"uri": "res://it", "name": "it"}],
    prompts=[{"name": "it"}],
)


class Handlers:
    async def limited(self, _args: Any, _ctx: Any) -> str:
        return "let in"

    job = pay = limited

    async def make(self, _args: Any, ctx: Any) -> dict[str, str]:
        return {"basket_id": await ctx.handles.basket.create({})}

    async def show(self, _args: Any, ctx: Any) -> str:
        return str(ctx.handles["basket_id"].state)

    async def switch(self, _args: Any, ctx: Any) -> str:
        await ctx.tools.changed()
        return "switched"

    async def asking(self, _args: Any, ctx: Any) -> str:
        return f"hello {(await ctx.ask.who()).name}"

    async def read_it(self, ctx: Any) -> str:
        await ctx.resources.updated("res://it")
        return "it"

    async def prompt_it(self, _args: Any, ctx: Any) -> str:
        await ctx.prompts.changed()
        return "it"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("away")
    with imported(folder, generate(folder, MANIFEST)) as found:
        yield found


@pytest.fixture
async def fake(redis_url: str, package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[FakeRedis]:
    """A Redis that can fail, and is not waited for long while it does."""
    own = importlib.import_module("stubwright_runtime.state.outages")
    async with fake_redis.run_proxy(redis_url) as found:
        become = found.become

        def become_impatiently(state: str) -> None:
            for name, seconds in (("PATIENCE", 0.3), ("_BRISK", 0.2)) if state != WELL else patience:
                monkeypatch.setattr(own, name, seconds)
            become(state)

        patience = [(name, getattr(own, name)) for name in ("PATIENCE", "_BRISK")]
        monkeypatch.setattr(found, "become", become_impatiently)
        yield found


def server(package: ModuleType, url: str) -> Any:
    return importlib.import_module(f"{package.__name__}.server").build_server(Handlers(), state=url)


CAPABILITIES: Mapping[str, Any] = {"elicitation": {}, "extensions": {EXTENSION: {}}}


def called(wire: Wire, name: str, /, *, task: bool = False, **arguments: Any) -> dict[str, Any]:
    """The parameters of a call, as a task or not; a client of 2026-07-28 leaves that to the server."""
    return {"name": name, "arguments": arguments, **({"task": {}} if task and wire.revision < STATELESS else {})}


def message(answer: Mapping[str, Any]) -> str:
    """What a refusal says: an `isError` result, or an error."""
    if "error" in answer:
        assert answer["error"]["code"] == -32603
        return str(answer["error"]["message"])
    assert answer.get("isError"), answer
    return first(answer)


@pytest.mark.parametrize(("state", "revision"), amounts.sample([*product(STATES, [HANDSHAKE, STATELESS])], 4))
async def test_every_request_gets_the_one_message(
    state: str, revision: str, package: ModuleType, fake: FakeRedis, caplog: pytest.LogCaptureFixture
) -> None:
    answers: list[Callable[[], dict[str, Any]]] = []

    def answer(asked: Mapping[str, Any]) -> dict[str, Any]:
        assert asked["method"] == "elicitation/create"
        return answers.pop()() if answers else {"action": "accept", "content": {"name": "Ann"}}

    def later() -> dict[str, Any]:
        fake.become(state)  # the user answers during the outage
        return {"action": "accept", "content": {"name": "Ann"}}

    given = {"who": {"action": "accept", "content": {"name": "Ann"}}}
    async with in_memory(server(package, fake.url), revision, CAPABILITIES, answer) as wire:
        basket = (await wire("tools/call", **called(wire, "make")))["structuredContent"]["basket_id"]
        for name in ("limited", "switch"):
            assert not (await wire("tools/call", **called(wire, name))).get("isError")
        made = await wire("tools/call", **called(wire, "asking", task=True))
        task = made["taskId"] if revision >= STATELESS else made["task"]["taskId"]
        await wire.until(task, "input_required")
        caplog.clear()
        told: dict[str, str] = {}
        if revision >= STATELESS:
            asked = await wire("tools/call", **called(wire, "pay"))
            again = {"requestState": asked["requestState"], "inputResponses": {}}
            fake.become(state)
            told["task answer"] = message(await wire("tasks/update", taskId=task, inputResponses=given))
            told["answer"] = message(await wire("tools/call", **called(wire, "pay"), **again))
        else:
            answers.append(later)
            told["task answer"] = message(await wire("tasks/result", taskId=task))
            told["list"] = message(await wire("tasks/list"))
        for name, more in (("limited", {}), ("make", {}), ("show", {"basket_id": basket})):
            told[name] = message(await wire("tools/call", **called(wire, name, **more)))
        told["job"] = message(await wire("tools/call", **called(wire, "job", task=True)))
        for method in ("tasks/get", "tasks/cancel"):
            told[method] = message(await wire(method, taskId=task))
        if fake_redis.ERRORS.get(state, ("", True))[1]:  # a server that rejects writes still publishes
            told["switch"] = message(await wire("tools/call", **called(wire, "switch")))
            told["resource"] = message(await wire("resources/read", uri="res://it"))
            told["prompt"] = message(await wire("prompts/get", name="it"))
        begun = {"make", "switch", "resource", "prompt"}
        assert {name for name, text in told.items() if text == UNKNOWN} >= begun & told.keys()
        assert {*told.values()} <= TOLD, told
        assert {told[name] for name in ("limited", "show", "tasks/get")} == {NOTHING}
        if revision >= STATELESS:
            assert told["answer"] == NOTHING
        assert "resultType" in await wire("tools/list") or revision < STATELESS
        fake.become(WELL)
        await _until_well(wire)
        assert (await wire("tasks/get", taskId=task))["status"] == "input_required", "nobody took the answer"
    assert not [record for record in caplog.records if record.exc_info], caplog.text
    lines = [record.getMessage() for record in caplog.records if record.levelno >= logging.WARNING]
    about = [line for line in lines if "the store at" in line]
    assert [("is unavailable" in line, "is available again" in line) for line in about] == [
        (True, False),
        (False, True),
    ], lines
    assert len(lines) <= 3, "the worker has a line of its own"


async def _until_well(wire: Wire) -> None:
    async with asyncio.timeout(60):
        while (await wire("tools/call", **called(wire, "limited"))).get("isError"):  # noqa: ASYNC110 - Redis is apart
            await asyncio.sleep(0.05)


async def test_a_hung_store_is_waited_for_once_in_a_call(package: ModuleType, fake: FakeRedis) -> None:
    """A call accesses the store several times; one access waits, and the others fail immediately for a while."""
    async with in_memory(server(package, fake.url), STATELESS, CAPABILITIES) as wire:
        basket = (await wire("tools/call", **called(wire, "make")))["structuredContent"]["basket_id"]
        fake.become(HUNG)
        assert message(await wire("tools/call", **called(wire, "show", basket_id=basket))) == NOTHING
        scripts = fake.heard.count(b"EVALSHA")
        for _ in range(20):
            assert message(await wire("tools/call", **called(wire, "limited"))) == NOTHING
        assert fake.heard.count(b"EVALSHA") == scripts <= 1


async def test_an_answer_that_came_while_the_store_was_away_can_be_sent_again(
    package: ModuleType, fake: FakeRedis
) -> None:
    async with in_memory(server(package, fake.url), STATELESS, CAPABILITIES) as wire:
        await _until_well(wire)
        asked = await wire("tools/call", **called(wire, "asking"))
        if asked["resultType"] == "task":
            asked = await wire.until(asked["taskId"], "input_required")
            send = ("tasks/update", {"taskId": asked["taskId"]})
        else:
            send = ("tools/call", {**called(wire, "asking"), "requestState": asked["requestState"]})
        given = {"who": {"action": "accept", "content": {"name": "Ann"}}}
        fake.become(STOPPED)
        assert message(await wire(send[0], **send[1], inputResponses=given)) == NOTHING
        fake.become(WELL)
        async with asyncio.timeout(60):
            while "error" in (said := await wire(send[0], **send[1], inputResponses=given)):
                assert message(said), "the store is slow on a busy machine"
                await asyncio.sleep(0.05)
        done = await wire.until(asked["taskId"], "completed", seconds=30)
        assert first(done["result"]) == "hello Ann"


GARBAGE = (b"", b"x", b"\xff\xfe", b"00", b"1e5", b"9" * 40)
KINDS = ("string", "list", "set", "zset", "hash", "stream")


async def _put(redis: Any, name: bytes, kind: str) -> None:
    """Store a value of another type at a name."""
    redis = redis.pipeline(transaction=True)  # the server may write to the name at any time
    redis.delete(name)
    match kind:
        case "string":
            redis.set(name, b"\xff")
        case "list":
            redis.rpush(name, b"\xff")
        case "set":
            redis.sadd(name, b"\xff")
        case "zset":
            redis.zadd(name, {b"\xff": 1})
        case "hash":
            redis.hset(name, b"\xff", b"\xff")
        case _:
            redis.xadd(name, {b"\xff": b"\xff"})
    await redis.execute()


async def _poisons(redis: Any, name: bytes) -> list[tuple[str, Callable[[], Any]]]:
    """Return all ways to corrupt the value at a name: another type, and each field with each kind of garbage."""
    kind = (await redis.type(name)).decode()
    found: list[tuple[str, Callable[[], Any]]] = [
        (other, partial(_put, redis, name, other)) for other in KINDS if other != kind
    ]
    fields: list[bytes] = [b"data", b"other"] if kind == "stream" else []
    if kind == "hash":
        fields = await redis.hkeys(name)
        found += [(f"no {field!r}", partial(redis.hdel, name, field)) for field in fields]
    for bad in GARBAGE:
        match kind:
            case "string":
                found.append((repr(bad), partial(redis.set, name, bad)))
            case "list":
                found.append((repr(bad), partial(redis.lset, name, 0, bad)))
            case "set":
                found.append((repr(bad), partial(redis.sadd, name, bad)))
            case "zset":
                found.append((repr(bad), partial(redis.zadd, name, {bad: 1e18})))
            case "hash":
                found += [(f"{field!r} = {bad!r}", partial(redis.hset, name, field, bad)) for field in fields]
            case _:
                found += [(f"{field!r} = {bad!r}", partial(redis.xadd, name, {field: bad})) for field in fields]
    return found


@pytest.mark.long
@pytest.mark.parametrize("revision", [HANDSHAKE, STATELESS])
async def test_whatever_stands_in_redis_is_no_internal_error(
    revision: str, package: ModuleType, redis_url: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Each key of each kind, corrupted in each way: every request about it gets a permitted response."""
    url, _, prefix = redis_url.partition("?prefix=")
    allowed, seen = {*TOLD, "Task not found"}, set[str]()
    async with (
        redis.asyncio.Redis.from_url(url) as raw,
        in_memory(server(package, redis_url), revision, CAPABILITIES) as wire,
    ):
        basket = (await wire("tools/call", **called(wire, "make")))["structuredContent"]["basket_id"]
        made = await wire("tools/call", **called(wire, "asking", task=True))
        task = made["taskId"] if revision >= STATELESS else made["task"]["taskId"]
        await wire.until(task, "input_required")
        made = await wire("tools/call", **called(wire, "job", task=True))
        ended = made["taskId"] if revision >= STATELESS else made["task"]["taskId"]
        await wire.until(ended, "completed")
        await wire("tools/call", **called(wire, "limited"))
        await raw.sadd(f"{prefix}:set:off:tools", "nothing")
        limited, show, job, switch = (
            ("tools/call", called(wire, name, task=name == "job", **more))
            for name, more in (("limited", {}), ("show", {"basket_id": basket}), ("job", {}), ("switch", {}))
        )
        none = {"inputResponses": {"none": {"action": "cancel"}}}
        end = "tasks/get" if revision >= STATELESS else "tasks/result"
        every = ("tasks/update", {"taskId": task, **none}) if revision >= STATELESS else ("tasks/list", {})
        requests: Mapping[str, list[tuple[str, dict[str, Any]]]] = {
            "window": [limited],
            "handle": [show],
            "created": [job],
            "secret": [show, limited, job, every],
            "accounts": [job, show],
            "used": [job, show],
            "account": [job, show],
            "record_index": [job, show, every],
            "set": [switch],
            "task": [("tasks/get", {"taskId": task}), every],
            "task-result": [(end, {"taskId": ended})],
            "task-results": [(end, {"taskId": ended})],
            "task-place": [job],
            "task-places": [job],
            "tasks": [job, every],
        }
        names: list[Any] = await raw.keys(f"{prefix}:*")
        for name in sorted(names):
            kind = name.decode().removeprefix(f"{prefix}:").partition(":")[0]
            kept, ttl = await raw.dump(name), await raw.pttl(name)
            if kept is None or kind == "lease":
                continue  # a lease that ended meanwhile
            seen.add(kind)
            for what, poison in await _poisons(raw, name):
                await poison()
                for method, params in requests[kind]:
                    answer = await wire(method, **params)
                    where = (kind, what, method, answer)
                    if "error" in answer:
                        assert answer["error"]["message"] in allowed, where
                    elif answer.get("isError"):
                        known = ("is unknown or has expired", "is nearly full", "stored here", "is exhausted")
                        assert first(answer) in TOLD or any(text in first(answer) for text in known), where
                await raw.restore(name, max(0, ttl), kept, replace=True)
    assert seen == requests.keys()
    assert not [record for record in caplog.records if record.exc_info], caplog.text


async def test_what_is_published_by_others_ends_nothing(package: ModuleType, redis_url: str) -> None:
    url, _, prefix = redis_url.partition("?prefix=")
    heard: list[bytes | None] = []

    async def hear(data: bytes | None) -> None:
        heard.append(data)

    built = server(package, redis_url)
    async with redis.asyncio.Redis.from_url(url) as raw, built.core.store.run():
        built.core.store.listen("news", hear)
        for channel in (b"\xff\xfe", b"news", b"", b"changes"):
            for data in GARBAGE:
                assert await raw.publish(f"{prefix}:topic:".encode() + channel, data) == 1
        await built.core.store.publish("news", b"one")
        async with asyncio.timeout(60):
            while heard != [b"one"]:  # noqa: ASYNC110 - what is heard is a list
                await asyncio.sleep(0.01)


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


async def test_one_call_waits_no_longer_than_its_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    """Slow responses add up, and quick ones do not; after a pause the deadline starts again."""
    clock, given = Clock(), list[float]()
    found = Outages("redis://x", (OSError,), clock=clock)

    def timeout(seconds: float) -> Any:
        given.append(seconds)
        return contextlib.AsyncExitStack()

    monkeypatch.setattr(outages, "asyncio", SimpleNamespace(timeout=timeout))

    async def ask(seconds: float) -> None:
        async with found.exchange(writes=False):
            clock.now += seconds

    with ContextValue(SCOPE, Scope("test", waits=WaitBudget())):
        for _ in range(100):
            await ask(0.5)
        await ask(3)
        await ask(1.9)
        await ask(0.5)
        await ask(1.5)
        with pytest.raises(StateLost):
            await ask(1)
        clock.now += 10
        await ask(1)
    await ask(4)
    await ask(4)
    assert given[:100] == [5.0] * 100
    assert given[100:] == pytest.approx([5.0, 2.0, 0.1, 0.1, 5.0, 5.0, 5.0])


async def fail(found: Outages, error: Exception) -> bool:
    """Make an exchange fail, and return whether it was attempted."""
    is_tried = False

    async def ask() -> None:
        nonlocal is_tried
        async with found.exchange(writes=False):
            is_tried = True
            raise error

    with pytest.raises(StateLost):
        await ask()
    return is_tried


@pytest.mark.parametrize("number", [1, 2, 5])
async def test_the_log_says_how_many_exchanges_failed(number: int, caplog: pytest.LogCaptureFixture) -> None:
    clock = Clock()
    found = Outages("redis://x", (OSError,), clock=clock)
    for _ in range(2):  # a second outage has a new deadline
        caplog.clear()
        for _ in range(number):
            assert await fail(found, OSError("away"))
        clock.now += 1
        async with found.exchange(writes=False):
            pass
        assert [record.getMessage() for record in caplog.records] == [
            "the store at redis://x is unavailable: away",
            f"the store at redis://x is available again; {number} exchanges failed",
        ]


async def test_a_store_that_hangs_is_left_alone_for_two_seconds() -> None:
    clock = Clock()
    found = Outages("redis://x", (OSError,), clock=clock)
    start = clock.now
    for seconds, is_tried in ((0, True), (0.001, False), (1.999, False), (2, True), (2.001, False)):
        clock.now = start + seconds
        assert await fail(found, TimeoutError()) is is_tried, seconds


async def test_a_store_that_refuses_at_once_is_asked_again_at_once() -> None:
    found = Outages("redis://x", (OSError,), clock=Clock())
    assert [await fail(found, ConnectionRefusedError()) for _ in range(3)] == [True] * 3


def test_the_message_is_one() -> None:
    assert (describe_lost_state(is_unknown=False), describe_lost_state(is_unknown=True)) == (NOTHING, UNKNOWN)
    sure, unsure = StateLost("a"), StateLost("b", is_unknown=True)
    assert find_state_lost(sure) is sure
    assert find_state_lost(BaseExceptionGroup("", [sure, ExceptionGroup("", [unsure])])) is unsure
    assert find_state_lost(ExceptionGroup("", [sure, ValueError()])) is None


async def test_failures_that_sent_nothing_did_nothing(redis_url: str) -> None:
    found = Outages("redis://x", (redis_library.exceptions.RedisError, OSError), (redis_library.ResponseError,))
    for error, is_unknown in (
        (ConnectionRefusedError(), False),
        (redis_library.ReadOnlyError("no"), False),
        (redis_library.ConnectionError("Connection closed by server."), True),
        (TimeoutError(), True),
    ):
        with pytest.raises(StateLost) as told:
            async with found.exchange(writes=True):
                raise error
        assert told.value.is_unknown is is_unknown, error
        found.mark_up(writes=True)


@pytest.mark.parametrize(
    ("ask", "unknown"),
    amounts.sample(
        [
            (lambda store: store.get("basket", "a"), [False]),
            (lambda store: store.measure("basket", "a"), [False]),
            (lambda store: store.list_owned("basket", "ann"), [False]),
            (lambda store: store.list_members("off"), [False]),
            (lambda store: store.publish("news", b"1"), [False]),
            (lambda store: store.create("basket", "b", b"", owner="ann", ttl=60), [True]),
            (lambda store: store.replace("basket", "a", b"", version=0), [True]),
            (lambda store: store.delete("basket", "a"), [True]),
            (lambda store: store.hold("lease", "ann", 60), [True]),
            (lambda store: store.release("lease", "ann"), [True]),
            (lambda store: store.switch("off", "a", on=True), [True]),
            (lambda store: store.use_nonce(make_nonce(), 60), [False, True]),
            (lambda store: store.create("basket", "b", b"", owner="ann", ttl=60, tracked=True), [False, True]),
            (lambda store: store.create("basket", "a", b"", owner="bob", ttl=None, tracked=True), [False, False, True]),
        ],
        5,
    ),
)
async def test_an_exchange_that_only_reads_is_known_to_have_changed_nothing(
    ask: Callable[[Any], Any], unknown: list[bool], redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each exchange of a call loses its connection in turn, once Redis has answered."""
    monkeypatch.setattr(redis_store, "_MANY", 1)  # with one record in an index, its existence is checked
    package: Any = SimpleNamespace(name="x_mcp", manifest={"server": {"name": "x"}})
    store: Any = redis_store.make_redis_store(redis_url, package)
    bounded, number, begun = store.exchange, 0, list[bool]()

    @contextlib.asynccontextmanager
    async def lose(*, writes: bool) -> AsyncIterator[None]:
        begun.append(writes)
        async with bounded(writes=writes):
            yield
            if len(begun) == number:
                raise redis_library.ConnectionError("Connection closed by server.")

    async with store.run():
        await store.create("basket", "a", b"", owner="bob", ttl=None, tracked=True)
        monkeypatch.setattr(store, "exchange", lose)
        for number, is_unknown in enumerate(unknown, 1):
            begun.clear()
            with pytest.raises(StateLost) as told:
                await ask(store)
            assert (len(begun), told.value.is_unknown) == (number, is_unknown)
        begun.clear()
        number = 0
        await ask(store)
        assert begun == unknown


async def test_a_store_ends_though_the_library_takes_its_end_for_a_lost_connection(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(redis_store, "_CANCELLING", 0.01)
    package: Any = SimpleNamespace(name="x_mcp", manifest={"server": {"name": "x"}})
    store = redis_store.make_redis_store("redis://127.0.0.1:1", package)
    swallowed: list[bool] = []

    async def pump(heard: asyncio.Event) -> None:
        heard.set()
        for _ in range(2):
            try:
                await asyncio.sleep(60)
            except asyncio.CancelledError:
                swallowed.append(True)
        await asyncio.sleep(60)

    monkeypatch.setattr(store, "_pump", pump)
    async with asyncio.timeout(60), store.run():
        pass
    assert swallowed == [True, True]


def test_unreadable_data_is_logged_ever_less_often(caplog: pytest.LogCaptureFixture) -> None:
    found = Outages("redis://x", (OSError,))
    for _ in range(9):
        found.record_unreadable("broken")
    assert [record.args[1] for record in caplog.records if isinstance(record.args, tuple)] == [1, 2, 4, 8]
