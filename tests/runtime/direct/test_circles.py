"""What is left of requests when they are over: nothing in a circle of references, however they end.

Python looks for such circles after so many new objects, of whatever size: requests of megabytes would stay for long.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from types import ModuleType
from typing import Any

import httpx2
import pytest

import conversations
from circles import no_requests_left
from conversations import READY, request, shaking, usual
from packages import generate, imported, manifest, tool
from serving import WAYS
from sink import Sink
from stubwright_runtime.server.core.building import build_core
from stubwright_runtime.server.transports.http.asgi import asgi_app
from stubwright_runtime.server.transports.stdio.connection import Connection
from stubwright_runtime.server.transports.stdio.reading import Line

TOOLS = [
    tool("say"),
    tool("fail", {"how": {"type": "string"}}),
    tool("talk", {"level": {"type": "string"}}),
    tool("wait"),
]
REQUESTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a result": ("tools/call", {"name": "say"}),
    "messages before it": ("tools/call", {"name": "talk", "_meta": {"progressToken": "t"}}),
    "a tool error": ("tools/call", {"name": "fail", "arguments": {"how": "tool"}}),
    "an exception": ("tools/call", {"name": "fail", "arguments": {"how": "other"}}),
    "arguments that do not fit": ("tools/call", {"name": "fail", "arguments": {"how": 1}}),
    "an unknown tool": ("tools/call", {"name": "none"}),
    "an unknown method": ("nothing/known", {}),
    "an unknown cursor": ("tools/list", {"cursor": "MQ"}),
    "a second handshake": ("initialize", shaking("2025-11-25")["params"]),
    "too large a handshake": ("initialize", {**shaking("2025-11-25")["params"], "x": "x" * 70_000}),
}
WAIT = ("tools/call", {"name": "wait"})


class Handlers(conversations.Handlers):
    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def wait(self, args: Any, ctx: Any) -> None:
        self.begun.set()
        await asyncio.sleep(60)


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("circles")
    with imported(folder, generate(folder, manifest(TOOLS, name="circles", **conversations.MORE))) as module:
        yield module


@pytest.mark.parametrize("stateless", [False, True])
def test_over_stdio(stateless: bool, package: ModuleType) -> None:
    async def use() -> None:
        handlers = Handlers()
        core = build_core(package.TOOLS["say"].package, handlers)
        async with core.lifespan():
            connection = Connection(core, sink)

            async def send(message: Any) -> None:
                await connection.take(Line(json.dumps(message).encode()))

            for message in () if stateless else (shaking("2025-11-25"), READY):
                await send(message)
            with no_requests_left():
                for method, params in REQUESTS.values():
                    await send(request(method, method, params, stateless=stateless))
                    await connection.wait_for_answers()
                await send(request(7, *WAIT, stateless=stateless))
                await handlers.begun.wait()
                await send({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}})
                await connection.wait_for_answers()
            await connection.close()

    sink: Any = Sink()
    asyncio.run(use())
    assert sum("error" in line for line in sink.lines) >= 5


@pytest.mark.parametrize("revision", ["2025-11-25", "2026-07-28"])
@pytest.mark.parametrize("way", WAYS, ids=["asgi", "httptools", "h11"])
def test_over_http(way: Any, revision: str, package: ModuleType) -> None:
    stateless = revision == "2026-07-28"

    async def use(url: str) -> int:
        async with httpx2.AsyncClient(timeout=20) as web:

            async def post(message: Any, session: str | None = None, **options: Any) -> httpx2.Response:
                return await web.post(url, json=message, headers=dict(usual(message, revision, session)), **options)

            session = None if stateless else (await post(shaking(revision))).headers["mcp-session-id"]
            refused = 0
            with no_requests_left():
                for method, params in REQUESTS.values():
                    message = request(method, method, params, stateless=stateless)
                    answer = await post(message, None if method == "initialize" else session)
                    refused += '"error":' in answer.text
                with pytest.raises(httpx2.ReadTimeout):
                    await post(request(7, *WAIT, stateless=stateless), session, timeout=0.2)
                if session is not None:
                    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
                    await post(cancelled, session)
                await asyncio.sleep(0.1)
            return refused

    with way(asgi_app(build_core(package.TOOLS["say"].package, Handlers()))) as url:
        assert asyncio.run(use(f"{url}/mcp")) >= 4
