"""Requests do not end with reference cycles, whatever the cause of their end.

Python collects cycles by the number of new objects, not by their size, so requests of megabytes would stay for long.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from itertools import product
from types import ModuleType
from typing import Any

import httpx2
import pytest

import amounts
import circles
import conversations
import prompt_ends
from circles import no_cycles, no_request_cycles
from conversations import READY, handshake, request, usual
from packages import generate, imported, manifest, tool
from serving import WAYS
from sink import Sink
from stubwright_runtime import ToolError
from stubwright_runtime.server.app.builder import build_core
from stubwright_runtime.server.transports.http.asgi import asgi_app
from stubwright_runtime.server.transports.stdio.connection import Connection
from stubwright_runtime.server.transports.stdio.reader import Line
from stubwright_runtime.tasks.records import Task
from task_wire import EXTENSION, HANDSHAKE, STATELESS, in_memory

ends_are_prompt = prompt_ends.ends_are_prompt

WHO = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
TOOLS = [
    tool("say"),
    tool("fail", {"how": {"type": "string"}}),
    tool("talk", {"level": {"type": "string"}}),
    tool("wait"),
    tool("block", {"how": {"type": "string"}}),
    tool("ask", stubwright={"ask": {"who": {"message": "Who?", "schema": WHO}}}),
    tool(
        "work", execution={"taskSupport": "optional"}, stubwright={"ask": {"who": {"message": "Who?", "schema": WHO}}}
    ),
]
REQUESTS: Mapping[str, tuple[str, Mapping[str, Any]]] = {
    "a result": ("tools/call", {"name": "say"}),
    "messages before it": ("tools/call", {"name": "talk", "_meta": {"progressToken": "t"}}),
    "a tool error": ("tools/call", {"name": "fail", "arguments": {"how": "tool"}}),
    "an exception": ("tools/call", {"name": "fail", "arguments": {"how": "other"}}),
    "a tool error in a thread": ("tools/call", {"name": "block", "arguments": {"how": "tool"}}),
    "an exception in a thread": ("tools/call", {"name": "block", "arguments": {"how": "other"}}),
    "arguments that do not fit": ("tools/call", {"name": "fail", "arguments": {"how": 1}}),
    "an unknown tool": ("tools/call", {"name": "none"}),
    "an unknown method": ("nothing/known", {}),
    "an unknown cursor": ("tools/list", {"cursor": "MQ"}),
    "a second handshake": ("initialize", handshake("2025-11-25")["params"]),
    "too large a handshake": ("initialize", {**handshake("2025-11-25")["params"], "x": "x" * 70_000}),
}
ADA = {"action": "accept", "content": {"name": "Ada"}}
WAIT = ("tools/call", {"name": "wait"})


class Handlers(conversations.Handlers):
    def __init__(self) -> None:
        self.begun = asyncio.Event()

    async def wait(self, args: Any, ctx: Any) -> None:
        self.begun.set()
        await asyncio.sleep(60)

    def block(self, args: Any, ctx: Any) -> None:
        raise ToolError("no") if args.how == "tool" else RuntimeError("secret")

    async def ask(self, args: Any, ctx: Any) -> str:
        return str((await ctx.ask.who()).name)

    work = ask


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("circles")
    with imported(folder, generate(folder, manifest(TOOLS, name="circles", **conversations.MORE))) as module:
        yield module


@pytest.mark.parametrize("stateless", amounts.sample([False, True], 1))
def test_over_stdio(stateless: bool, package: ModuleType) -> None:
    async def use() -> None:
        handlers = Handlers()
        core = build_core(package.TOOLS["say"].package, handlers)
        async with core.lifespan():
            connection = Connection(core, sink)

            async def send(message: Any) -> None:
                await connection.handle(Line(json.dumps(message).encode()))

            for message in () if stateless else (handshake("2025-11-25"), READY):
                await send(message)
            with no_request_cycles():
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


@pytest.mark.parametrize(("way", "revision"), amounts.sample([*product(WAYS, ["2025-11-25", "2026-07-28"])], 2))
def test_over_http(way: Any, revision: str, package: ModuleType) -> None:
    stateless = revision == "2026-07-28"
    impatient = httpx2.Timeout(60, read=0.3)

    async def use(url: str) -> int:
        async with httpx2.AsyncClient(timeout=60) as web, httpx2.AsyncClient(timeout=impatient) as leaving:

            async def post(message: Any, session: str | None = None, by: httpx2.AsyncClient = web) -> httpx2.Response:
                return await by.post(url, json=message, headers=dict(usual(message, revision, session)))

            session = None if stateless else (await post(handshake(revision))).headers["mcp-session-id"]
            refused = 0
            with no_request_cycles():
                for method, params in REQUESTS.values():
                    message = request(method, method, params, stateless=stateless)
                    answer = await post(message, None if method == "initialize" else session)
                    refused += '"error":' in answer.text
                with pytest.raises(httpx2.ReadTimeout):
                    await post(request(7, *WAIT, stateless=stateless), session, leaving)
                if session is not None:
                    cancelled = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 7}}
                    await post(cancelled, session)
                await asyncio.sleep(0.5)
            return refused

    with way(asgi_app(build_core(package.TOOLS["say"].package, Handlers()))) as url:
        assert asyncio.run(use(f"{url}/mcp")) >= 4


@pytest.mark.parametrize(
    "body", amounts.sample([{"error": {"code": -1, "message": "no"}}, {"result": {"action": "decline"}}], 1)
)
def test_a_question(body: Any, package: ModuleType) -> None:
    async def use() -> None:
        async with in_memory(package.build_server(Handlers()), HANDSHAKE, {"elicitation": {}}) as wire:
            with no_request_cycles():
                asking = wire.start("tools/call", name="ask", arguments={})
                await wire.questioned()
                await wire.transport.send({"id": wire.asked[0]["id"], **body})
                await asking

    asyncio.run(use())


@pytest.mark.parametrize("revision", amounts.sample([HANDSHAKE, STATELESS], 1))
def test_tasks(revision: str, package: ModuleType) -> None:
    asks = revision == HANDSHAKE
    as_task: dict[str, Any] = {"task": {}} if asks else {}

    async def use() -> None:
        able: dict[str, Any] = {"elicitation": {}, "extensions": {EXTENSION: {}}}
        async with in_memory(package.build_server(Handlers()), revision, able) as wire:
            with no_cycles(*circles.REQUESTS, Task):
                made = await wire("tools/call", name="work", arguments={}, **as_task)
                name = (made["task"] if asks else made)["taskId"]
                await wire.until(name, "input_required")
                if asks:  # the client leaves while it is asked, and comes back
                    for number in (1, 2):
                        asking = wire.start("tasks/result", taskId=name)
                        while len(wire.asked) < number:  # noqa: ASYNC110 - what is asked is a list
                            await asyncio.sleep(0.01)
                        if number == 1:
                            request_id = max(each for each in wire._waiting if isinstance(each, int))
                            cancelled = {"method": "notifications/cancelled", "params": {"requestId": request_id}}
                            await wire.transport.send(cancelled)
                            asking.cancel()
                    await wire.transport.send({"id": wire.asked[-1]["id"], "result": ADA})
                    await asking
                else:
                    await wire("tasks/update", taskId=name, inputResponses={"who": ADA})
                    await wire.until(name, "completed")
                await asyncio.sleep(0.5)

    asyncio.run(use())
