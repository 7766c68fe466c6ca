"""Threads for plain `def` methods: the limits in total and for each method."""

from __future__ import annotations

import asyncio
import math
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from functools import partial
from types import ModuleType
from typing import Any

import anyio.from_thread
import anyio.to_thread
import mcp
import mcp_types as types
import pytest

import prompt_ends
from packages import generate, imported, manifest, tool
from serving import asgi
from stubwright_runtime.server.execution.threads import NoFreeThreadError, Threads
from stubwright_runtime.server.package_server import PackageServer

ends_are_prompt = prompt_ends.ends_are_prompt

pytestmark = pytest.mark.anyio

ERAS = ("legacy", "2026-07-28")


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


class Gate:
    """A function that blocks its thread until the gate is open, and how many do."""

    def __init__(self) -> None:
        self.inside = 0
        self._open = threading.Event()
        self._lock = threading.Lock()

    def __call__(self) -> str:
        with self._lock:
            self.inside += 1
        assert self._open.wait(60)
        return "passed"

    def open(self) -> None:
        self._open.set()

    async def has(self, number: int) -> None:
        await until(lambda: self.inside == number)


@pytest.fixture
def gate() -> Iterator[Gate]:
    made = Gate()
    yield made
    made.open()


async def until(is_so: Callable[[], bool]) -> None:
    for _ in range(2000):
        if is_so():
            return
        await asyncio.sleep(0.005)
    assert is_so()


async def test_threads_whose_callers_left_count_until_they_end(gate: Gate) -> None:
    threads = Threads(4)
    slow = [asyncio.create_task(threads.run("slow", gate)) for _ in range(2)]
    await gate.has(2)
    for task in slow:
        task.cancel()
    await asyncio.wait(slow)
    with pytest.raises(NoFreeThreadError, match="All 2 threads of slow are busy"):
        await threads.run("slow", gate, patience=0.01)
    assert await threads.run("other", lambda: "done", patience=0) == "done"
    gate.open()
    assert await threads.run("slow", gate) == "passed"


async def test_all_threads_together_are_bounded(gate: Gate) -> None:
    threads = Threads(3)
    assert await threads.run("four", lambda: 4, patience=0) == 4
    async with anyio.create_task_group() as group:
        for name in ("one", "two", "three"):
            group.start_soon(partial(threads.run, name, gate))
        await gate.has(3)
        with pytest.raises(NoFreeThreadError, match="All 3 threads of the server are busy"):
            await threads.run("four", gate, patience=0.01)
        gate.open()
    with pytest.raises(ValueError, match="threads must be positive, not 0"):
        Threads(0)


async def test_who_waits_gets_the_next_thread_in_the_order_of_coming() -> None:
    threads, order = Threads(2), list[int]()
    gates = [Gate() for _ in range(4)]

    def pass_through(number: int) -> None:
        gates[number]()
        order.append(number)

    tasks = []
    for number in range(4):
        tasks.append(asyncio.create_task(threads.run("same", partial(pass_through, number), patience=math.inf)))
        await asyncio.sleep(0)
    await gates[0].has(1)
    tasks[1].cancel()
    gates[3].open()
    gates[0].open()
    await gates[2].has(1)
    assert order == [0]
    gates[2].open()
    await asyncio.wait(tasks)
    assert (order, gates[1].inside) == ([0, 2, 3], 0)


async def test_a_thread_may_wait_for_another_that_it_starts() -> None:
    threads = Threads(1)

    def outer() -> str:
        return str(anyio.from_thread.run(partial(threads.run, "outer", lambda: "inner", patience=0)))

    assert await threads.run("outer", outer) == "inner"


async def test_errors_come_back_and_free_their_thread() -> None:
    threads = Threads(1)
    for error in (ValueError("no"), StopIteration(), SystemExit(3)):

        def fail(error: BaseException = error) -> None:
            raise error

        with pytest.raises((type(error), RuntimeError)):
            await threads.run("fail", fail, patience=0)
    assert await threads.run("fail", lambda: 1, patience=0) == 1


async def test_the_threads_of_others_in_the_process_are_not_needed(gate: Gate) -> None:
    limiter = anyio.to_thread.current_default_thread_limiter()
    total, limiter.total_tokens = limiter.total_tokens, 1
    try:
        async with anyio.create_task_group() as group:
            group.start_soon(anyio.to_thread.run_sync, gate)
            await gate.has(1)
            assert await Threads(2).run("mine", lambda: "done") == "done"
            gate.open()
    finally:
        limiter.total_tokens = total


# The server.


@pytest.fixture(scope="module")
def package(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ModuleType]:
    folder = tmp_path_factory.mktemp("threads")
    value = manifest(
        [
            tool("slow"),
            tool("quick"),
            tool("waiting"),
            tool("keeping", stubwright={"ask": {"sure": {"message": "?", "schema": {"type": "object"}}}}),
        ],
        name="threads",
        emit=["server"],
        resources=[{"uri": "a://page", "name": "page"}],
        prompts=[
            {
                "name": "talk",
                "arguments": [{"name": "to"}],
                "stubwright": {"complete": {"to": "handler"}},
            }
        ],
    )
    with imported(folder, generate(folder, value)) as module:
        yield module


class Handlers:
    def __init__(self, gate: Gate) -> None:
        self.gate = gate

    def slow(self, args: Any, ctx: Any) -> str:
        return self.gate()

    def quick(self, args: Any, ctx: Any) -> str:
        return "quick"

    async def waiting(self, args: Any, ctx: Any) -> str:
        return "waited"

    def keeping(self, args: Any, ctx: Any) -> str:
        return str(ctx.wait(ctx.once("kept", lambda: "kept")))

    def read_page(self, ctx: Any) -> str:
        return self.gate()

    def prompt_talk(self, args: Any, ctx: Any) -> str:
        return "hello"

    def complete_prompt_talk(self, args: Any, ctx: Any) -> list[str]:
        return ["you"]


@asynccontextmanager
async def connected(server: Any, app: Any, kind: str, era: Any) -> AsyncIterator[mcp.Client]:
    if kind == "http":
        with asgi(app) as url:
            async with mcp.Client(f"{url}/mcp", mode=era) as client:
                yield client
    else:
        async with mcp.Client(server, mode=era) as client:
            yield client


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("kind", ["pipe", "http"])
async def test_calls_of_others_go_on_while_one_tool_has_all_its_threads(
    kind: str, era: str, package: ModuleType, gate: Gate
) -> None:
    app = package.asgi_app(Handlers(gate), threads=2)
    server = PackageServer(app.state.server)
    server.core.threads.patience = 0.05
    async with connected(server, app, kind, era) as client, anyio.create_task_group() as group:
        given_up = asyncio.create_task(client.call_tool("slow", {}))
        await gate.has(1)
        given_up.cancel()
        await asyncio.wait([given_up])
        refused = await client.call_tool("slow", {})
        assert refused.is_error
        assert refused.content == [
            types.TextContent(
                type="text",
                text="slow was not run. The only thread of slow is busy; try again in a few seconds.",
            )
        ]
        for name, text in (("quick", "quick"), ("waiting", "waited"), ("keeping", "kept")):
            result = await client.call_tool(name, {})
            assert (result.is_error, result.content[0]) == (False, types.TextContent(type="text", text=text))
        about = types.PromptReference(name="talk")
        assert (await client.complete(about, {"name": "to", "value": ""})).completion.values == ["you"]
        group.start_soon(client.read_resource, "a://page")
        await gate.has(2)
        with pytest.raises(mcp.MCPError, match="All 2 threads of the server are busy"):
            await client.get_prompt("talk")
        assert (await client.call_tool("waiting", {})).content == [types.TextContent(type="text", text="waited")]
        assert gate.inside == 2
        gate.open()
    assert gate.inside == 2


async def test_the_default_is_bounded(package: ModuleType, gate: Gate) -> None:
    server = package.build_server(Handlers(gate))
    server.core.threads.patience = 0.05
    async with mcp.Client(server) as client, anyio.create_task_group() as group:
        for _ in range(32):
            group.start_soon(client.call_tool, "slow", {})
        await gate.has(32)
        assert (await client.call_tool("slow", {})).is_error
        gate.open()
