"""Repeated calls: one effect for each key, and the first result for all of them."""

from __future__ import annotations

import asyncio
import json
import logging
import re
import textwrap
import threading
from importlib.resources import files
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import pytest
import yaml
from conftest import ROOT
from mcp.server.auth.provider import AccessToken

from packages import generate, imported, manifest, tool
from server_fixture import HELLO
from server_process import Process
from serving import asgi
from stubwright.diff.kinds import policies
from stubwright_runtime.mcp.vocabulary import IDEMPOTENCY_META_KEY, REPLAY_META_KEY
from stubwright_runtime.policy import once
from stubwright_runtime.server.features.url_elicitation import UrlRequired
from stubwright_runtime.state import leases
from stubwright_runtime.state.budget import BudgetExceeded
from stubwright_runtime.state.store import StateLost
from stubwright_runtime.state.stores import store_at
from task_wire import HANDSHAKE, STATELESS, Wire, in_memory, over_http

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from types import ModuleType

pytestmark = pytest.mark.anyio

ERAS = [HANDSHAKE, STATELESS]
FORMS: dict[str, Any] = {"elicitation": {"form": {}}}
_ORDER: dict[str, Any] = {"order_id": {"type": "string"}, "amount": {"type": "number"}, "card": {"type": "string"}}


def paying(name: str, policy: dict[str, Any] | None = None, /, **rule: Any) -> dict[str, Any]:
    """A tool that charges for an order."""
    return tool(name, _ORDER, stubwright={"policy": {"once": {"key": ["order_id"], **rule}, **(policy or {})}})


_FILLED: dict[str, Any] = {
    "order_id": {"type": "string"},
    "line": {"type": ["integer", "null"], "default": 1},
    "amount": {"type": "number", "default": 10},
    "to": {"type": "object", "properties": {"land": {"type": "string", "default": "FR"}}},
    "card": {"type": ["string", "null"]},
}
_QUESTION = {"sure": {"message": "Sure?", "schema": {"type": "object", "properties": {"name": {"type": "string"}}}}}
_BIND = {"card": {"env": "TILL_CARD"}}
MANIFEST = manifest(
    [
        paying("pay"),
        paying("brief", **{"for": "500ms"}),
        paying("hasty", {"timeout": "300ms"}),
        paying("bold", onUnknown="run"),
        paying("secret", {"redact": ["/card"]}),
        paying("confirmed", {"confirm": True}),
        paying("bound", {"confirm": True}, key=["order_id", "card"]),
        paying("owned", key=["card"]),
        paying("small"),
        paying("keyed", key="request"),
        paying("whole", key="all"),
        paying("pair", key=["order_id", "card"]),
        tool("asks", _ORDER, stubwright={"policy": {"once": {"key": ["order_id"]}}, "ask": _QUESTION}),
        tool("plain", _ORDER),
        paying("blocking"),
        tool(
            "paged",
            _ORDER,
            outputSchema={"type": "object", "properties": {"items": {"type": "array"}}, "required": ["items"]},
            stubwright={"paginate": {"items": "items", "size": 1}, "policy": {"once": {"key": ["order_id"]}}},
        ),
        tool("filled", _FILLED, stubwright={"policy": {"once": {"key": ["order_id", "line", "card"]}}}),
    ],
    name="till",
    storage={"maxBytesPerPrincipal": "64KiB", "maxBytes": "1MiB"},
)
for each in MANIFEST["tools"]:
    if each["name"] in ("bound", "owned"):
        each["stubwright"]["bind"] = _BIND


TILL: Any = SimpleNamespace(name="till_mcp", manifest={"server": {"name": "till"}})


class Handlers:
    """The effects of all calls, in order; `failure` is raised by the next call, `gate` and `pause` delay all calls."""

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.failure: BaseException | None = None
        self.gate: asyncio.Event | None = None
        self.thread_gate = threading.Event()
        self.size = 0
        self.pause = 0.0
        self.swallows = False

    async def pay(self, args: Any, _ctx: Any) -> str:
        self.effects.append(args.order_id or "")
        if self.gate is not None:
            await self.gate.wait()
        await asyncio.sleep(self.pause)
        failure, self.failure = self.failure, None
        if failure is not None:
            raise failure
        return f"receipt {len(self.effects)}" + "x" * self.size

    brief = hasty = bold = secret = confirmed = bound = owned = small = keyed = whole = pair = plain = filled = pay

    def blocking(self, args: Any, _ctx: Any) -> str:
        self.effects.append(args.order_id)
        assert self.thread_gate.wait(60)
        return "receipt"

    async def paged(self, _args: Any, ctx: Any) -> dict[str, Any]:
        self.effects.append(ctx.page.position or "first")
        return {"items": [len(self.effects)], **({} if ctx.page.position else {"nextCursor": "second"})}

    async def asks(self, args: Any, ctx: Any) -> str:
        try:
            answer = await ctx.ask.sure()
        except BaseException:
            if self.swallows:
                return "no answer"
            raise
        self.effects.append(args.order_id)
        return f"receipt of {answer.name}"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder: Path = tmp_path_factory.mktemp("till")
    with imported(folder, generate(folder, MANIFEST)) as made:
        yield made


async def call(wire: Wire, name: str = "pay", key: Any = None, **arguments: Any) -> dict[str, Any]:
    """The result of a call, with a key of the client's own if there is one."""
    more: dict[str, Any] = {} if key is None else {"_meta": {IDEMPOTENCY_META_KEY: key}}
    return await wire("tools/call", name=name, arguments=arguments, **more)


def text(result: dict[str, Any]) -> str:
    found: str = result["content"][0]["text"]
    return found


def is_replay(result: dict[str, Any]) -> bool:
    return bool(result.get("_meta", {}).get(REPLAY_META_KEY, False))


def is_unknown(result: dict[str, Any]) -> bool:
    return text(result).startswith("It is unknown whether pay took effect")


@pytest.mark.parametrize("revision", ERAS)
async def test_a_repeated_call_has_one_effect_and_the_first_result(
    package: ModuleType, revision: str, state: str
) -> None:
    handlers = Handlers()
    async with in_memory(package.build_server(handlers, state=state), revision, {}) as wire:
        first = await call(wire, order_id="A1", amount=10)
        again = [await call(wire, order_id="A1", amount=amount) for amount in (10, 10.0)]
        other = await call(wire, order_id="A2", amount=10)
    assert [text(result) for result in (first, *again, other)] == ["receipt 1"] * 3 + ["receipt 2"]
    assert [is_replay(result) for result in (first, *again, other)] == [False, True, True, False]
    assert handlers.effects == ["A1", "A2"]


async def test_other_arguments_are_refused_and_both_are_shown(package: ModuleType, state: str) -> None:
    handlers = Handlers()
    async with in_memory(package.build_server(handlers, state=state), STATELESS, {}) as wire:
        await call(wire, order_id="A1", amount=10)
        refused = await call(wire, order_id="A1", amount=20, card="x" * 200)
        await call(wire, "secret", order_id="A1", card="1234-first")
        hidden = await call(wire, "secret", order_id="A1", card="1234-second")
        await call(wire, "pair", order_id="A1", card="a")
        pair = await call(wire, "pair", order_id="A1", card="b")
    assert refused["isError"]
    assert text(refused).splitlines()[:3] == [
        'pay was called with order_id "A1" before, but with other arguments:',
        "- amount: was 10, is 20",
        f'- card: was absent, is "{"x" * 99}…',
    ]
    assert hidden["isError"]
    assert "1234" not in text(hidden)
    assert "the differences cannot be shown" in text(hidden)
    assert not pair.get("isError")
    assert handlers.effects == ["A1"] * 4


async def test_bound_arguments_are_not_shown(package: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TILL_CARD", "1234-first")
    confirm = {"action": "accept", "content": {"confirm": True}}
    async with in_memory(package.build_server(Handlers()), HANDSHAKE, FORMS, lambda _: confirm) as wire:
        results = [await call(wire, "bound", order_id="A1", amount=amount) for amount in (10, 20)]
        results += [await call(wire, "owned", amount=amount) for amount in (10, 20)]
    assert [message["params"]["message"] for message in wire.asked] == [
        'Run bound with {"order_id": "A1", "amount": 10}?'
    ]
    assert [text(result).partition("\n")[0] for result in results] == [
        "receipt 1",
        'bound was called with order_id "A1" before, but with other arguments:',
        "receipt 2",
        "owned was called with the same key before, but with other arguments:",
    ]


@pytest.mark.parametrize(
    ("repeated", "answer"),
    [
        ({"line": 1, "amount": 10.0}, "receipt 1"),
        ({"to": {}}, "receipt 1"),
        ({"to": {"land": "FR"}}, "receipt 1"),
        ({"line": 2}, "receipt 2"),
        ({"to": {"land": "IT"}}, '- to: was {"land": "FR"}, is {"land": "IT"}'),
        ({"card": None}, "- card: was absent, is null"),
    ],
)
async def test_defaults_and_nulls_are_compared_as_handlers_get_them(
    package: ModuleType, repeated: dict[str, Any], answer: str
) -> None:
    handlers = Handlers()
    async with in_memory(package.build_server(handlers), STATELESS, {}) as wire:
        await call(wire, "filled", order_id="A1", to={})
        again = await call(wire, "filled", **{"order_id": "A1", "to": {}, **repeated})
    assert answer in text(again)


async def test_a_key_may_be_the_clients_or_all_arguments_or_absent(package: ModuleType, state: str) -> None:
    handlers = Handlers()
    async with in_memory(package.build_server(handlers, state=state), STATELESS, {}) as wire:
        for key in ("k1", "k1", "k2"):
            await call(wire, "keyed", key, order_id="A")
        assert handlers.effects == ["A"] * 2
        proposed = await wire("tools/call", name="keyed", arguments={"order_id": "A"}, idempotencyKey="k1")
        assert is_replay(proposed)
        conflict = await call(wire, "keyed", "k1", order_id="B")
        assert text(conflict).startswith('keyed was called with the idempotency key "k1" before')
        for bad in (1, "", "x" * 256):
            assert "must be a string of 1 to 255 characters" in text(await call(wire, "keyed", bad, order_id="A"))
        assert len(handlers.effects) == 2
        for _ in range(2):
            await call(wire, "keyed", order_id="no key")
            await call(wire, "pay", amount=1)
        assert handlers.effects[2:] == ["no key", "", "no key", ""]
        handlers.effects.clear()
        for arguments in ({"order_id": "A"}, {"order_id": "B"}, {"order_id": "A"}, {}, {}):
            await call(wire, "whole", **arguments)
        assert handlers.effects == ["A", "B", ""]


async def test_each_page_is_a_call_of_its_own(package: ModuleType) -> None:
    handlers = Handlers()
    async with in_memory(package.build_server(handlers), STATELESS, {}) as wire:
        for _ in range(2):
            page = await call(wire, "paged", order_id="A1")
            following = await call(wire, "paged", order_id="A1", cursor=page["structuredContent"]["nextCursor"])
    assert is_replay(following)
    assert following["structuredContent"]["items"] == [2]
    assert handlers.effects == ["first", "second"]


async def test_of_a_hundred_calls_at_once_one_runs(package: ModuleType, state: str) -> None:
    handlers = Handlers()
    handlers.gate = asyncio.Event()
    async with in_memory(package.build_server(handlers, state=state), STATELESS, {}) as wire:
        calls = [asyncio.ensure_future(call(wire, order_id="A1", amount=1)) for _ in range(100)]
        while not handlers.effects:  # noqa: ASYNC110 - the handler notes it in a list
            await asyncio.sleep(0.01)
        conflict = await call(wire, order_id="A1", amount=2)
        handlers.gate.set()
        results = await asyncio.gather(*calls)
    assert handlers.effects == ["A1"]
    assert {text(result) for result in results} == {"receipt 1"}
    assert sum(map(is_replay, results)) == 99
    assert "amount: was 1, is 2" in text(conflict)


async def test_two_servers_share_the_effects_in_redis(package: ModuleType, redis_url: str) -> None:
    handlers = Handlers()
    handlers.gate = asyncio.Event()
    servers = [package.build_server(handlers, state=redis_url) for _ in range(2)]
    async with in_memory(servers[0], STATELESS, {}) as one, in_memory(servers[1], STATELESS, {}) as two:
        calls = [asyncio.ensure_future(call(wire, order_id="A1")) for wire in (one, two) * 20]
        while not handlers.effects:  # noqa: ASYNC110 - the handler notes it in a list
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.2)
        handlers.gate.set()
        results = await asyncio.gather(*calls)
        assert is_replay(await call(one, order_id="A1"))
        assert is_replay(await call(two, order_id="A1"))
    assert handlers.effects == ["A1"]
    assert {text(result) for result in results} == {"receipt 1"}
    assert sum(map(is_replay, results)) == 39


async def test_the_order_of_the_arguments_of_a_key_does_not_matter(package: ModuleType, redis_url: str) -> None:
    handlers = Handlers()
    reordered = package.build_server(handlers, state=redis_url)
    async with in_memory(package.build_server(handlers, state=redis_url), STATELESS, {}) as wire:
        await call(wire, "pair", order_id="A1", card="1")
    key = reordered.core.package.find_policy("pair")["once"]["key"]
    key.reverse()
    async with in_memory(reordered, STATELESS, {}) as wire:
        assert is_replay(await call(wire, "pair", order_id="A1", card="1"))
    key.reverse()


async def test_a_waiting_call_is_told_that_the_first_one_is_still_running(
    package: ModuleType, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(once, "_PATIENCE", 0.3)
    handlers = Handlers()
    handlers.gate = asyncio.Event()
    servers = [package.build_server(handlers, state=redis_url) for _ in range(2)]
    async with in_memory(servers[0], STATELESS, {}) as near, in_memory(servers[1], STATELESS, {}) as far:
        first = asyncio.ensure_future(call(near, order_id="A1"))
        while not handlers.effects:  # noqa: ASYNC110 - the handler notes it in a list
            await asyncio.sleep(0.01)
        told = [await call(wire, order_id="A1") for wire in (near, far)]
        handlers.gate.set()
        assert text(await first) == "receipt 1"
    for result in told:
        assert result["isError"]
        assert text(result).startswith('pay with order_id "A1" is still running after 1 second.')
    assert handlers.effects == ["A1"]


async def test_a_timeout_leaves_the_effect_unknown(package: ModuleType, state: str) -> None:
    handlers = Handlers()
    handlers.gate = asyncio.Event()
    async with in_memory(package.build_server(handlers, state=state), STATELESS, {}) as wire:
        first, second = await asyncio.gather(*(call(wire, "hasty", order_id="A1") for _ in range(2)))
        handlers.gate.set()
        later = await call(wire, "hasty", order_id="A1")
    assert "took longer than 300ms and was stopped" in text(first)
    assert text(second).startswith('hasty with order_id "A1" is still running')
    assert text(later).startswith('It is unknown whether hasty took effect with order_id "A1"')
    assert handlers.effects == ["A1"]


async def test_tool_errors_are_results_and_other_failures_leave_it_unknown(package: ModuleType, state: str) -> None:
    handlers = Handlers()
    async with in_memory(package.build_server(handlers, state=state), STATELESS, {}) as wire:
        handlers.failure = package.ToolError("The card was declined.")
        declined = [await call(wire, order_id="A1") for _ in range(2)]
        handlers.failure = RuntimeError("power cut")
        failed = [await call(wire, order_id="A2") for _ in range(3)]
        handlers.failure = RuntimeError("power cut")
        bold = [await call(wire, "bold", order_id="A3") for _ in range(3)]
    assert [text(result) for result in declined] == ["The card was declined."] * 2
    assert all(result["isError"] for result in declined)
    assert [is_replay(result) for result in declined] == [False, True]
    assert [is_unknown(result) for result in failed] == [
        False,
        True,
        True,
    ]
    assert [text(result) for result in bold[1:]] == ["receipt 4"] * 2
    assert [is_replay(result) for result in bold] == [False, False, True]
    assert handlers.effects == ["A1", "A2", "A3", "A3"]


@pytest.mark.parametrize("name", ["pay", "bold"])
async def test_a_process_that_dies_leaves_the_effect_unknown(
    package: ModuleType, redis_url: str, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(once, "LEASE", 0.3)
    dead, alive = Handlers(), Handlers()
    dead.gate = asyncio.Event()

    async def die(*_: object) -> None:
        """A dead process loses its state."""

    monkeypatch.setattr(once.IdempotentCalls, "_settle", die)
    async with in_memory(package.build_server(dead, state=redis_url), STATELESS, {}) as wire:
        lost = asyncio.ensure_future(call(wire, name, order_id="A1"))
        while not dead.effects:  # noqa: ASYNC110 - the handler notes it in a list
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.5)
        async with in_memory(package.build_server(alive, state=redis_url), STATELESS, {}) as other:
            monkeypatch.setattr(once, "_PATIENCE", 0.1)
            waiting = await call(other, name, order_id="A1")
            assert "is still running" in text(waiting), "the lease is renewed while the process lives"
        dead.gate.set()
        await lost
    monkeypatch.undo()
    async with in_memory(package.build_server(alive, state=redis_url), STATELESS, {}) as wire:
        results = [await call(wire, name, order_id="A1") for _ in range(2)]
    if name == "pay":
        assert [is_unknown(result) for result in results] == [True, True]
        assert alive.effects == []
    else:
        assert [text(result) for result in results] == ["receipt 1"] * 2
        assert alive.effects == ["A1"]


async def test_a_call_that_blocks_the_event_loop_keeps_its_lease(
    package: ModuleType, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(leases, "RENEWAL", 0.001)
    store: Any = store_at(redis_url, TILL)
    client, renewed = vars(store)["_blocking"], list[int]()

    class Blocking(Handlers):
        async def pay(self, _args: Any, _ctx: Any) -> str:
            [lease] = client.keys(f"{store.prefix}:lease:*")
            client.pexpire(lease, 10_000)
            for _ in range(200):
                if client.pttl(lease) > 10_000:
                    renewed.append(1)
                    break
                threading.Event().wait(0.01)
            return "receipt"

    async with in_memory(package.build_server(Blocking(), state=redis_url), STATELESS, {}) as wire:
        await call(wire, order_id="A1")
    assert renewed


@pytest.mark.parametrize(("name", "effects"), [("pay", 1), ("bold", 2)])
async def test_a_store_that_lost_what_it_kept_is_noticed(
    package: ModuleType,
    redis_url: str,
    name: str,
    effects: int,
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(once, "_PATIENCE", 1.0)  # the claim that noticed it has a lease
    handlers = Handlers()
    async with in_memory(package.build_server(handlers, state=redis_url), STATELESS, {}) as wire:
        await call(wire, name, order_id="A1")
        store: Any = store_at(redis_url, TILL)
        redis: Any = vars(store)["_redis"]
        names = await redis.keys(f"{store.prefix}:once:*")
        assert len(names) == 1
        await redis.delete(*names)
        await redis.aclose()
        with caplog.at_level(logging.WARNING):
            later = [await call(wire, name, order_id="A1") for _ in range(2)]
    assert "the store lost the record of a call to" in caplog.text
    assert len(handlers.effects) == effects
    if name == "pay":
        assert [is_unknown(each) for each in later] == [True, True]
    else:
        assert [is_replay(each) for each in later] == [False, True]


async def test_nothing_runs_while_the_store_cannot_be_reached(package: ModuleType) -> None:
    handlers = Handlers()
    async with in_memory(package.build_server(handlers, state="redis://127.0.0.1:1/0"), STATELESS, {}) as wire:
        refused = await call(wire, order_id="A1")
        await call(wire, "plain", order_id="B1")
    assert text(refused) == "The server's store cannot be reached; the request had no effect. Try again in 5 seconds."
    assert handlers.effects == ["B1"]


async def find_leases(redis_url: str) -> dict[str, bytes]:
    """The holders of the leases in Redis."""
    store: Any = store_at(redis_url, TILL)
    redis: Any = vars(store)["_redis"]
    found = {name: await redis.get(name) for name in await redis.keys(f"{store.prefix}:lease:*")}
    await redis.aclose()
    return found


async def test_a_result_is_stored_if_the_call_is_cancelled_meanwhile(
    package: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers, saving, proceed = Handlers(), asyncio.Event(), asyncio.Event()
    server = package.build_server(handlers)
    replace = server.core.store.replace

    async def wait(*arguments: Any, **options: Any) -> bool:
        saving.set()
        await proceed.wait()
        return bool(await replace(*arguments, **options))

    monkeypatch.setattr(server.core.store, "replace", wait)
    async with in_memory(server, HANDSHAKE, {}) as wire:
        cancelled = wire.start("tools/call", name="pay", arguments={"order_id": "A1"})
        await saving.wait()
        await wire.transport.send({"method": "notifications/cancelled", "params": {"requestId": 2}})
        repeated = wire.start("tools/call", name="pay", arguments={"order_id": "A1"})
        await asyncio.sleep(0.01)
        proceed.set()
        assert text(await repeated) == "receipt 1"
        cancelled.cancel()


async def test_a_claim_whose_answer_is_lost_does_not_block_its_key(
    package: ModuleType, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers = Handlers()
    server = package.build_server(handlers, state=state)
    claim = server.core.store.claim

    async def lose_answer(*arguments: Any, **options: Any) -> None:
        await claim(*arguments, **options)
        raise StateLost("cut", is_unknown=True)

    async with in_memory(server, STATELESS, {}) as wire:
        with monkeypatch.context() as patch:
            patch.setattr(server.core.store, "claim", lose_answer)
            refused = await call(wire, order_id="A1")
        results = [await call(wire, order_id="A1") for _ in range(2)]
    assert text(refused) == "The server's store cannot be reached; the request had no effect. Try again in 5 seconds."
    assert [text(result) for result in results] == ["receipt 1"] * 2
    assert handlers.effects == ["A1"]


async def test_a_key_that_could_not_be_released_does_not_block_later_calls(
    package: ModuleType, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    handlers = Handlers()
    server = package.build_server(handlers, state=state)

    async def fail(*_arguments: Any, **_options: Any) -> None:
        raise StateLost("cut")

    async with in_memory(server, STATELESS, FORMS) as wire:
        with monkeypatch.context() as patch:
            patch.setattr(server.core.store, "delete", fail)
            asked = await call(wire, "asks", order_id="A1")
        again = await call(wire, "asks", order_id="A1")
    assert asked["resultType"] == again["resultType"] == "input_required"


async def test_a_call_that_runs_again_is_not_run_elsewhere_meanwhile(
    package: ModuleType, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(once, "_PATIENCE", 0.1)
    handlers = Handlers()
    handlers.failure = RuntimeError("power cut")
    servers = [package.build_server(handlers, state=redis_url) for _ in range(2)]
    async with in_memory(servers[0], STATELESS, {}) as one, in_memory(servers[1], STATELESS, {}) as two:
        await call(one, "bold", order_id="A1")
        first = await find_leases(redis_url)
        handlers.gate = asyncio.Event()
        again = asyncio.ensure_future(call(one, "bold", order_id="A1"))
        while len(handlers.effects) < 2:  # noqa: ASYNC110 - the handler notes it in a list
            await asyncio.sleep(0.01)
        assert (await find_leases(redis_url)).keys() == first.keys()
        assert [*(await find_leases(redis_url)).values()] != [*first.values()], "the lease of the first run may end now"
        meanwhile = await call(two, "bold", order_id="A1")
        handlers.gate.set()
        await again
    assert "is still running" in text(meanwhile)
    assert handlers.effects == ["A1"] * 2


async def test_a_result_is_over_in_time(package: ModuleType, state: str) -> None:
    handlers = Handlers()
    async with in_memory(package.build_server(handlers, state=state), STATELESS, {}) as wire:
        await call(wire, "brief", order_id="A1")
        assert is_replay(await call(wire, "brief", order_id="A1"))
        await asyncio.sleep(0.6)
        assert text(await call(wire, "brief", order_id="A1", amount=2)) == "receipt 2"


async def test_a_call_that_outlasts_its_key_leaves_the_next_one_alone(package: ModuleType, redis_url: str) -> None:
    slow, next_one = Handlers(), Handlers()
    servers = [package.build_server(each, state=redis_url) for each in (slow, next_one)]
    async with in_memory(servers[0], STATELESS, {}) as one, in_memory(servers[1], STATELESS, {}) as two:
        for ends in ("receipt", "question"):
            slow.gate, next_one.gate = asyncio.Event(), asyncio.Event()
            slow.failure = UrlRequired("sign_in", "https://a.example", "Sign in.", "1") if ends == "question" else None
            first = asyncio.ensure_future(call(one, "brief", order_id=ends))
            while ends not in slow.effects:  # noqa: ASYNC110 - the handler notes it in a list
                await asyncio.sleep(0.01)
            await asyncio.sleep(0.5)
            second = asyncio.ensure_future(call(two, "brief", order_id=ends, amount=2))
            while ends not in next_one.effects:  # noqa: ASYNC110 - the handler notes it in a list
                await asyncio.sleep(0.01)
            slow.gate.set()
            await first
            next_one.gate.set()
            await second
            assert is_replay(await call(two, "brief", order_id=ends, amount=2))


async def test_a_call_that_did_not_reach_the_handler_takes_no_key(package: ModuleType, state: str) -> None:
    handlers = Handlers()
    answers = iter(["decline", "accept"])

    def answer(_message: Any) -> dict[str, Any]:
        action = next(answers)
        return {"action": action, "content": {"confirm": True}} if action == "accept" else {"action": action}

    async with in_memory(package.build_server(handlers, state=state), HANDSHAKE, FORMS, answer) as wire:
        invalid = await call(wire, order_id=1)
        declined = await call(wire, "confirmed", order_id="A1")
        accepted = [await call(wire, "confirmed", order_id="A1") for _ in range(2)]
        await call(wire, order_id="1")
    assert text(invalid).startswith("Invalid arguments for pay")
    assert "declined" in text(declined)
    assert [text(result) for result in accepted] == ["receipt 1"] * 2, "a repeated call is not confirmed again"
    assert handlers.effects == ["A1", "1"]


async def test_a_call_without_a_free_thread_takes_no_key(package: ModuleType, state: str) -> None:
    handlers = Handlers()
    server = package.build_server(handlers, state=state, threads=1)
    server.core.threads.patience = 0.05
    async with in_memory(server, STATELESS, {}) as wire:
        first = asyncio.ensure_future(call(wire, "blocking", order_id="A1"))
        while not handlers.effects:  # noqa: ASYNC110 - the handler notes it in a list
            await asyncio.sleep(0.01)
        refused = await call(wire, "blocking", order_id="A2")
        handlers.thread_gate.set()
        await first
        again = await call(wire, "blocking", order_id="A2")
    assert text(refused).startswith("blocking was not run.")
    assert (text(again), is_replay(again)) == ("receipt", False)
    assert handlers.effects == ["A1", "A2"]


@pytest.mark.parametrize("swallows", [False, True])
async def test_a_question_gives_the_key_back_until_it_is_answered(
    package: ModuleType, state: str, swallows: bool
) -> None:
    handlers = Handlers()
    handlers.swallows = swallows
    async with in_memory(package.build_server(handlers, state=state), STATELESS, FORMS) as wire:
        for _ in range(2):
            asked = await call(wire, "asks", order_id="A1")
            assert asked["resultType"] == "input_required"
        answers = {name: {"action": "accept", "content": {"name": "Ada"}} for name in asked["inputRequests"]}
        more = {"inputResponses": answers, "requestState": asked["requestState"]}
        done = await wire("tools/call", name="asks", arguments={"order_id": "A1"}, **more)
        again = await call(wire, "asks", order_id="A1")
    assert text(done) == text(again) == "receipt of Ada"
    assert is_replay(again)
    assert handlers.effects == ["A1"]


async def test_results_count_against_the_bytes_of_their_caller(package: ModuleType, state: str) -> None:
    handlers = Handlers()
    async with in_memory(package.build_server(handlers, state=state), STATELESS, {}) as wire:
        handlers.size = 80 * 1024
        large = [await call(wire, "small", order_id="large") for _ in range(2)]
        handlers.size = 0
        results = [await call(wire, "small", order_id=f"{number}") for number in range(60)]
    assert len(text(large[0])) > 80 * 1024, "the call itself has its result"
    assert text(large[1]) == (
        'small was carried out with order_id "large", and is not run again; its result was too large to store.'
    )
    refused = [result for result in results if result.get("isError")]
    assert 0 < len(refused) < 60
    assert "stored here. The limit is 64 KiB" in text(refused[0])
    assert len(handlers.effects) == 61 - len(refused)


async def test_that_a_call_was_carried_out_is_stored_without_room_for_a_byte(
    package: ModuleType, state: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    server = package.build_server(Handlers(), state=state)
    replace = server.core.store.replace

    async def refuse(*arguments: Any, final: bool = False, **options: Any) -> bool:
        if not final:
            raise BudgetExceeded("caller", 1, 1, None)
        return bool(await replace(*arguments, final=final, **options))

    monkeypatch.setattr(server.core.store, "replace", refuse)
    async with in_memory(server, STATELESS, {}) as wire:
        first, again = [text(await call(wire, order_id="A1")) for _ in range(2)]
    assert first == "receipt 1"
    assert again.endswith("its result was too large to store.")


class Verifier:
    """Any token is a user's."""

    async def verify_token(self, token: str) -> AccessToken:
        return AccessToken(token=token, client_id="c", scopes=[], subject=token)


async def test_another_caller_has_keys_of_its_own(package: ModuleType) -> None:
    handlers = Handlers()
    records: list[Any] = []
    handlers.failure = package.ToolError("The card was declined.")
    app = package.asgi_app(handlers, token_verifier=Verifier(), audit=records.append)
    with asgi(app) as url:
        for user in ("ann", "bob", "ann"):
            headers = {"authorization": f"Bearer {user}"}
            async with over_http(f"{url}/mcp", STATELESS, {}, headers=headers) as wire:
                await call(wire, order_id="A1", amount=1 if user == "ann" else 2)
                conflict = await call(wire, order_id="A1", amount=3)
                assert "was 1" in text(conflict) if user == "ann" else "was 2" in text(conflict)
    assert handlers.effects == ["A1", "A1"]
    async with asyncio.timeout(10):
        while len(records) < 6:  # noqa: ASYNC110 - a thread writes the records
            await asyncio.sleep(0.01)
    refused: Any = ("invalid", "once_conflict", False)
    assert [(each.outcome, each.reason, each.replayed) for each in records] == [
        ("tool_error", "tool_error", False),
        refused,
        ("completed", None, False),
        refused,
        ("tool_error", "tool_error", True),
        refused,
    ]


async def test_a_killed_process_leaves_the_effect_unknown(
    tmp_path: Path, redis_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The process takes effect, and is killed before it keeps the result."""
    source = """
        import os
        import signal

        class Till:
            async def pay(self, args, ctx):
                with open("effects", "a") as file:
                    file.write("paid\\n")
                os.kill(os.getpid(), signal.SIGKILL)
    """
    (tmp_path / "till.py").write_text(textwrap.dedent(source))
    value = manifest([paying("pay")], name="process", python={"handlers": "till:Till"})
    with imported(tmp_path, generate(tmp_path, value)) as made:
        process = Process(tmp_path, "--state", redis_url)
        process.send("initialize", {**HELLO, "protocolVersion": HANDSHAKE})
        process.receive()
        process.write(b'{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        process.call("pay", order_id="A1")
        with pytest.raises(AssertionError, match="no answer"):
            process.receive()
        handlers = Handlers()
        async with in_memory(made.build_server(handlers, state=redis_url), STATELESS, {}) as wire:
            monkeypatch.setattr(once, "_PATIENCE", 0.2)
            assert "is still running" in text(await call(wire, order_id="A1")), "until its lease has ended"
            store: Any = store_at(redis_url, TILL)
            redis: Any = vars(store)["_redis"]
            await redis.delete(*await redis.keys(f"{store.prefix}:lease:*"))
            await redis.aclose()
            assert is_unknown(await call(wire, order_id="A1"))
    assert (tmp_path / "effects").read_text() == "paid\n"
    assert handlers.effects == []


@pytest.mark.parametrize("revision", ERAS)
async def test_a_call_whose_client_leaves_goes_on(package: ModuleType, revision: str) -> None:
    handlers = Handlers()
    handlers.pause = 1.0
    with asgi(package.asgi_app(handlers)) as url:
        async with over_http(f"{url}/mcp", revision, {}) as wire:
            lost = asyncio.ensure_future(call(wire, order_id="A1"))
            while not handlers.effects:  # noqa: ASYNC110 - the handler notes it in a list
                await asyncio.sleep(0.01)
        lost.cancel()
        async with over_http(f"{url}/mcp", revision, {}) as wire:
            again = await call(wire, order_id="A1")
    assert text(again) == "receipt 1"
    assert is_replay(again)
    assert handlers.effects == ["A1"]


async def test_the_examples_of_the_docs_take_effect_once(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "repeating.md").read_text()
    [tools] = re.findall(r"^## Three examples$.*?^```yaml\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    name = generate(tmp_path, manifest(yaml.safe_load(tools)["tools"], name="examples"))
    effects: list[str] = []

    async def run(args: Any, _ctx: Any) -> str:
        effects.append(type(args).__name__)
        return "done"

    handlers = SimpleNamespace(pay_order=run, send_email=run, book_work_order=run)
    calls: list[tuple[str, dict[str, Any]]] = [
        ("pay_order", {"order_id": "A1", "amount": 10}),
        ("send_email", {"to": "ann@example.com", "subject": "Order A1", "text": "Paid."}),
        ("book_work_order", {"machine": "M7", "day": "2026-12-01"}),
    ]
    with imported(tmp_path, name) as package:
        async with in_memory(package.build_server(handlers), STATELESS, {}) as wire:
            replays = [
                is_replay(await call(wire, tool_name, **arguments)) for tool_name, arguments in calls for _ in range(2)
            ]
    assert replays == [False, True] * 3
    assert len(effects) == 3


def test_the_default_lifetime_is_the_same_everywhere() -> None:
    schema = json.loads((files("stubwright") / "compile" / "manifest.schema.json").read_text("utf-8"))
    default = schema["$defs"]["policy"]["properties"]["once"]["properties"]["for"]["default"]
    assert default == once.FOR == policies.ONCE_FOR


async def test_what_redis_holds_is_sealed(package: ModuleType, redis_url: str) -> None:
    async with in_memory(package.build_server(Handlers(), state=redis_url), STATELESS, {}) as wire:
        await call(wire, order_id="very-secret-order")
    store: Any = store_at(redis_url, TILL)
    redis: Any = vars(store)["_redis"]
    names = await redis.keys(f"{store.prefix}:once:*")
    fields = [await redis.hgetall(name) for name in names]
    await redis.aclose()
    assert len(fields) == 1
    assert "very-secret" not in repr(fields)
    assert "receipt" not in repr(fields)
