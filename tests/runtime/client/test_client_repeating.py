"""Clients that lose responses: the same key again, one effect, and the first result."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import ModuleType
from typing import Any

import pytest

import amounts
from packages import generate, imported, manifest, tool
from serving import asgi
from stubwright_runtime.client.core.connect_errors import ConnectError, Unreachable
from stubwright_runtime.client.rpc.mcp_error import MCPError
from stubwright_runtime.mcp.vocabulary import IDEMPOTENCY_META_KEY, REPLAY_META_KEY

pytestmark = pytest.mark.anyio

ORDER: dict[str, Any] = {"order_id": {"type": "string"}}
TOOLS = [
    tool("pay", ORDER, stubwright={"policy": {"once": {"key": "request"}}}),
    tool("other", ORDER, stubwright={"policy": {"once": {"key": ["order_id"]}}}),
    tool("plain", ORDER),
]
HANDSHAKE, STATELESS = "2025-11-25", "2026-07-28"


class Handlers:
    """The effects, in order; each takes `pause` seconds."""

    def __init__(self) -> None:
        self.effects: list[str] = []
        self.pause = 0.0

    async def pay(self, args: Any, _ctx: Any) -> str:
        self.effects.append(args.order_id or "")
        number = len(self.effects)
        await asyncio.sleep(self.pause)
        return f"receipt {number}"

    other = plain = pay


class Lossy:
    """A server behind a gateway that loses the answers to the next calls, each in its own way."""

    def __init__(self, app: Any) -> None:
        self.app = app
        self.faults: list[str] = []
        self.keys: list[Any] = []

    async def __call__(self, scope: Any, receive: Any, send: Any) -> Any:
        if scope["type"] != "http" or scope["method"] != "POST":
            return await self.app(scope, receive, send)
        body = b""
        while True:
            event = await receive()
            body += event.get("body", b"")
            if not event.get("more_body"):
                break
        message = json.loads(body)
        is_call = message.get("method") == "tools/call"
        if is_call:
            self.keys.append((message["params"].get("_meta") or {}).get(IDEMPOTENCY_META_KEY))
        events = [{"type": "http.request", "body": body, "more_body": False}]

        async def again() -> Any:
            return events.pop(0) if events else await receive()

        fault = self.faults.pop(0) if is_call and self.faults else ""
        if not fault:
            return await self.app(scope, again, send)
        if fault == "late":  # the answer gets stuck after the gateway
            return await self.app(scope, again, self._get_stuck)
        if fault != "before":
            await self.app(scope, again, self._lose)
        if fault == "cut":
            headers = [(b"content-length", b"100"), (b"content-type", b"application/json")]
            await send({"type": "http.response.start", "status": 200, "headers": headers})
            await send({"type": "http.response.body", "body": b'{"jso', "more_body": False})
            return None
        status, _, seconds = ("502" if fault == "before" else fault).partition(" ")
        headers = [(b"content-type", b"text/plain"), *([(b"retry-after", seconds.encode())] if seconds else [])]
        await send({"type": "http.response.start", "status": int(status), "headers": headers})
        await send({"type": "http.response.body", "body": b"bad gateway"})
        return None

    async def _lose(self, event: Any) -> None:
        """Drop a part of an answer."""

    async def _get_stuck(self, event: Any) -> None:
        await asyncio.sleep(3600)


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module", params=[HANDSHAKE, STATELESS])
def package(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("repeating")
    made = manifest(TOOLS, client={"revision": request.param})
    with imported(folder, generate(folder, made)) as module:
        yield module


@contextmanager
def lossy(package: ModuleType, handlers: Handlers) -> Iterator[tuple[Lossy, str]]:
    gateway = Lossy(package.asgi_app(handlers))
    with asgi(gateway) as url:
        yield gateway, f"{url}/mcp"


@pytest.mark.parametrize("fault", [*amounts.sample(["502", "503", "504"], 1), "cut", "before"])
async def test_a_lost_call_is_sent_again_with_its_key_and_has_one_effect(package: ModuleType, fault: str) -> None:
    handlers = Handlers()
    with lossy(package, handlers) as (gateway, url):
        async with package.SampleClient.connect(url) as client:
            gateway.faults = [fault, fault]
            first = await client.with_raw_response.pay(order_id="A1")
            other = await client.pay(order_id="A1")
    assert first.text == "receipt 1"
    assert first.meta.get(REPLAY_META_KEY, False) is (fault != "before")
    assert other.text == "receipt 2"  # another call has another key
    assert handlers.effects == ["A1", "A1"]
    assert gateway.keys[0] == gateway.keys[1] == gateway.keys[2] != gateway.keys[3]
    assert None not in gateway.keys


@pytest.mark.parametrize("package", [HANDSHAKE], indirect=True)
async def test_a_call_survives_the_loss_of_its_session_and_of_the_next_one(package: ModuleType) -> None:
    handlers = Handlers()
    with lossy(package, handlers) as (gateway, url):
        async with package.SampleClient.connect(url) as client:
            gateway.faults = ["404", "404"]
            assert (await client.pay(order_id="A1")).text == "receipt 1"
    assert handlers.effects == ["A1"]
    assert len(gateway.keys) == 3
    assert len(set(gateway.keys)) == 1


async def test_other_tools_are_sent_once(package: ModuleType) -> None:
    handlers = Handlers()
    with lossy(package, handlers) as (gateway, url):
        async with package.SampleClient.connect(url) as client:
            for method in (client.other, client.plain):
                gateway.faults = ["502"]
                with pytest.raises(Unreachable):
                    await method(order_id="A1")
            with pytest.raises(ValueError, match="plain does not accept an idempotency key"):
                await client.with_options(idempotency_key="k").plain(order_id="A1")
    assert gateway.keys == [None, None]
    assert handlers.effects == ["A1", "A1"]


async def test_a_program_gives_the_key_and_repeats_the_call_later(package: ModuleType) -> None:
    handlers = Handlers()
    with lossy(package, handlers) as (gateway, url):
        for _ in range(2):
            async with package.SampleClient.connect(url) as client:
                result = await client.with_options(idempotency_key="order A1").pay(order_id="A1")
                assert result.text == "receipt 1"
                with pytest.raises(ValueError, match="idempotency_key must have 1 to 255 characters"):
                    client.with_options(idempotency_key="")
    assert handlers.effects == ["A1"]
    assert gateway.keys == ["order A1"] * 2


@pytest.mark.parametrize("status", ["500", "429", "401", "503 3600"])
async def test_an_answer_that_refuses_or_postpones_is_not_repeated(package: ModuleType, status: str) -> None:
    with lossy(package, Handlers()) as (gateway, url):
        async with package.SampleClient.connect(url) as client:
            gateway.faults = [status]
            with pytest.raises(ConnectError):
                await client.pay(order_id="A1")
    assert len(gateway.keys) == 1


async def test_attempts_end_with_the_timeout(package: ModuleType) -> None:
    with lossy(package, Handlers()) as (gateway, url):
        async with package.SampleClient.connect(url) as client:
            gateway.faults = ["502"] * 1000
            begun = time.monotonic()
            with pytest.raises(Unreachable, match="502"):
                await client.with_options(timeout=0.8).pay(order_id="A1")
            assert time.monotonic() - begun < 5
    assert 1 < len(gateway.keys) < 20
    assert len(set(gateway.keys)) == 1


@pytest.mark.parametrize("package", [STATELESS], indirect=True)
async def test_an_attempt_without_an_answer_leaves_time_for_another(package: ModuleType) -> None:
    handlers = Handlers()
    with lossy(package, handlers) as (gateway, url):
        async with package.SampleClient.connect(url) as client:
            gateway.faults = ["late"]
            assert (await client.with_options(timeout=3).pay(order_id="A1")).text == "receipt 1"
            gateway.faults = ["late"] * 10
            with pytest.raises(MCPError, match=r"the server did not respond within 0\.6 seconds, in \d attempts"):
                await client.with_options(timeout=0.6).pay(order_id="A2")
    assert handlers.effects == ["A1", "A2"]


@pytest.mark.parametrize(("package", "attempts"), [(STATELESS, 2), (HANDSHAKE, 1)], indirect=["package"])
async def test_a_slow_call_goes_on_while_its_client_asks_again(package: ModuleType, attempts: int) -> None:
    handlers = Handlers()
    handlers.pause = 1.2
    with lossy(package, handlers) as (gateway, url):
        async with package.SampleClient.connect(url) as client:
            assert (await client.with_options(timeout=3).pay(order_id="A1")).text == "receipt 1"
    assert len(gateway.keys) == attempts
    assert handlers.effects == ["A1"]


@pytest.mark.parametrize("package", [STATELESS], indirect=True)
async def test_a_call_without_http_has_one_attempt_and_all_of_its_timeout(package: ModuleType) -> None:
    handlers = Handlers()
    handlers.pause = 0.5
    async with package.SampleClient.connect(package.build_server(handlers)) as client:
        assert (await client.with_options(timeout=1.2).pay(order_id="A1")).text == "receipt 1"
    assert handlers.effects == ["A1"]
