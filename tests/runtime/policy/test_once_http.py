"""The key of `once` in the header by which an API detects repeated calls."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from fake_api import Answer, Asked
from http_tools import Running, called, run_package
from stubwright_runtime.mcp.vocabulary import IDEMPOTENCY_META_KEY, REPLAY_META_KEY
from task_wire import STATELESS, in_memory

ORDER: dict[str, Any] = {"order_id": {"type": "string"}, "amount": {"type": "number"}}
ONCE: dict[str, Any] = {"once": {"key": ["order_id"]}}


def binding(name: str, policy: dict[str, Any] | None = None, /, **http: Any) -> dict[str, Any]:
    """A tool that charges for an order by a POST."""
    made = called(name, ORDER, {"method": "POST", "url": "/charges", **http})
    made["stubwright"]["policy"] = policy or {}
    return made


TOOLS = [
    binding("charge", ONCE),
    binding("bold", {"once": {"key": ["order_id"], "onUnknown": "run"}, "timeout": "20s"}),
    binding("named", ONCE, idempotencyHeader="X-Request-Key"),
    binding("alone", idempotencyHeader="Idempotency-Key"),
    binding("keyed", {"once": {"key": "request"}}, idempotencyHeader="Idempotency-Key"),
    binding("own", ONCE, headers={"idempotency-key": "{order_id}"}),
    binding("reads", ONCE, method="GET", query={"id": "{order_id}", "amount": "{amount}"}),
    binding("plain"),
]


def keys(run: Running, header: str = "idempotency-key") -> list[str | None]:
    """The keys that the API has seen, in order."""
    seen = [asked.headers.get(header) for asked in run.api.asked]
    run.api.asked.clear()
    return seen


def pay(_asked: Asked) -> Answer:
    return {"paid": True}


def test_an_api_gets_one_key_for_each_key_of_once(tmp_path: Path) -> None:
    with run_package(tmp_path, TOOLS, pay) as run:
        for order in ("A1", "A1", "A2"):  # a new server for each call
            run.call("charge", order_id=order)
        first, again, other = keys(run)
        assert first == again != other
        assert str(UUID(first)) == first
        assert UUID(first).version == 4

        run.call("named", order_id="A1")
        assert keys(run, "x-request-key") not in ([first], [None])
        run.call("own", order_id="A1")
        assert keys(run) == ["A1"]
        for name in ("reads", "plain"):
            run.call(name, order_id="A1")
        assert keys(run) == [None, None]


def test_a_call_without_a_key_gets_a_new_one_for_the_api(tmp_path: Path) -> None:
    with run_package(tmp_path, TOOLS, pay) as run:
        for name in ("alone", "alone", "keyed", "keyed"):
            run.call(name, order_id="A1")
        made = keys(run)
        assert len(set(made)) == 4
        assert None not in made

        async def repeat() -> list[Any]:
            call: dict[str, Any] = {"name": "keyed", "arguments": {"order_id": "A1"}}
            async with in_memory(run.package.build_server(), STATELESS, {}) as wire:
                return [await wire("tools/call", **call, _meta={IDEMPOTENCY_META_KEY: "retry-1"}) for _ in range(2)]

        first, again = asyncio.run(repeat())
        assert REPLAY_META_KEY not in first.get("_meta", {})
        assert again["_meta"][REPLAY_META_KEY] is True
        assert len(keys(run)) == 1


@pytest.mark.parametrize(("name", "attempts"), [("alone", 2), ("charge", 1)])
def test_a_busy_api_is_asked_again_with_the_same_key_if_it_knows_keys(name: str, attempts: int, tmp_path: Path) -> None:
    answers: list[Answer] = [(503, "busy"), {"paid": True}]

    def answer(_asked: Asked) -> Answer:
        return answers.pop(0)

    with run_package(tmp_path, TOOLS, answer) as run:
        result = run.call(name, order_id="A1")
        assert result.is_error is (attempts == 1)
        made = keys(run)
        assert len(made) == attempts
        assert len(set(made)) == 1


@pytest.mark.parametrize(
    ("name", "first", "settings", "repeated"),
    [
        ("charge", 429, {}, "paid"),
        ("charge", 401, {}, "paid"),
        ("charge", 402, {}, "402"),
        ("charge", 503, {}, "It is unknown"),
        ("charge", "late", {"timeout": "100ms"}, "It is unknown"),
        ("bold", 500, {}, "paid"),
        ("read", 500, {}, "paid"),
        ("charge", 0, {"baseUrl": "http://127.0.0.1:1", "baseUrlEnv": "NO_URL"}, "cannot be reached"),
    ],
)
def test_only_a_request_that_the_api_has_decided_has_a_result(
    name: str, first: int | str, settings: dict[str, Any], repeated: str, tmp_path: Path
) -> None:
    answers: list[Any] = [first, {"paid": True}]

    def answer(_asked: Asked) -> Answer:
        given = answers.pop(0)
        if given == "late":
            time.sleep(0.3)
            return "late"
        return (given, "failed") if isinstance(given, int) else given

    async def repeat(run: Running) -> list[Any]:
        call: dict[str, Any] = {"name": name, "arguments": {"order_id": "A1"}}
        async with in_memory(run.package.build_server(), STATELESS, {}) as wire:
            return [await wire("tools/call", **call) for _ in range(2)]

    with run_package(tmp_path, [*TOOLS, binding("read", ONCE, method="GET")], answer, **settings) as run:
        failed, again = asyncio.run(repeat(run))
        keys_seen = keys(run)
    assert failed["isError"]
    assert repeated in again["content"][0]["text"]
    assert (REPLAY_META_KEY in again.get("_meta", {})) is (first == 402)
    assert len(set(keys_seen)) <= 1


def test_a_call_that_runs_again_after_an_interruption_has_the_same_key(tmp_path: Path) -> None:
    class Handlers:
        def __init__(self) -> None:
            self.keys: list[str] = []

        async def bold(self, _args: Any, ctx: Any) -> str:
            self.keys.append(ctx.idempotency_key("charge"))
            if len(self.keys) == 1:
                raise RuntimeError("the process lost its mind")
            return "paid"

    handlers = Handlers()

    async def repeat(run: Running) -> None:
        async with run.package.SampleClient.connect(run.package.build_server(handlers)) as client:
            for order in ("A1", "A1", "A2"):
                await client.raw.call_tool("bold", {"order_id": order})

    with run_package(tmp_path, TOOLS, pay) as run:
        asyncio.run(repeat(run))
    first, again, other = handlers.keys
    assert first == again != other
