"""Measures calls with more MCP features: OpenTelemetry, tasks, progress messages, and session streams.

`measure` returns the rows of a round for the commands of the SDK's bare server and of a generated server. The bare
server has no tasks, so the baseline of a task is a plain call. Both servers of a row run at the same time and are
called in alternating blocks.
"""

from __future__ import annotations

import asyncio
import resource
import sys
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

from guards import generate
from over_http import HANDSHAKE, STATELESS, Connection
from servers import Process, memory, serve, start_server
from serving import CALL
from table import BARE, OURS, Figures, Row
from timing import by_turns
from tools import tools

BLOCK = 20
"""Consecutive calls of one server before the other server's block."""

STEPS = 10
STREAMS = 1000
SETTLED = 50
"""Open streams before the first measurement of memory."""

TRACING = """
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

provider = TracerProvider()
provider.add_span_processor(SimpleSpanProcessor(InMemorySpanExporter()))
trace.set_tracer_provider(provider)
"""
HANDLERS = """
class Handlers:
    async def search_items_0(self, args, ctx):
        steps = args.steps or 0
        for step in range(steps):
            await ctx.progress(step + 1, steps)
        return {"items": [], "total": 0}
"""

Commands = Mapping[str, Sequence[str]]
Params = dict[str, Any]

_TOKEN = {"progressToken": "steps"}
_STEPS = {**CALL, "arguments": {**CALL["arguments"], "steps": STEPS}}


def measure(commands: Commands, folder: Path, calls: int) -> Figures:
    """Return one round's rows."""
    (folder / "feature_handlers.py").write_text(HANDLERS)
    tool = tools(1)[0]
    tool["inputSchema"]["properties"]["steps"] = {"type": "integer", "minimum": 0}
    if not (folder / "tasked_mcp").exists():  # in the first round
        generate(folder, "stepping", {"tools": [tool]})
        generate(folder, "tasked", {"tools": [{**tool, "execution": {"taskSupport": "optional"}}]})
    stepping, tasked = (
        {BARE: commands[BARE], OURS: [sys.executable, "-m", f"{name}_mcp", "--handlers", "feature_handlers:Handlers"]}
        for name in ("stepping", "tasked")
    )
    (folder / "traced").mkdir(exist_ok=True)
    (folder / "traced" / "sitecustomize.py").write_text(TRACING)
    traced = {name: ["env", f"PYTHONPATH={folder / 'traced'}", *command] for name, command in commands.items()}
    plain, task, steps = _Ask(CALL), _Ask({**CALL, "task": {}}, of_task=True), _Ask({**_STEPS, "_meta": _TOKEN}, STEPS)
    rows: Figures = {BARE: {}, OURS: {}}
    for name, servers, asking, target in (
        ("call over stdio, with OpenTelemetry", traced, {BARE: plain, OURS: plain}, 0.4),
        ("plain call over stdio to a server with tasks", tasked, {BARE: plain, OURS: plain}, 0.3),
        ("task over stdio until its result, compared with a call", tasked, {BARE: plain, OURS: task}, None),
        (f"call with {STEPS} progress messages over stdio", stepping, {BARE: steps, OURS: steps}, None),
    ):
        row = Row(name, target, False, "ms")
        for side, seconds in _over_stdio(servers, folder, asking, calls).items():
            rows[side][row] = seconds * 1000
    for name, servers, params, notifications in (
        ("call over HTTP, with OpenTelemetry", traced, CALL, 0),
        ("plain call over HTTP to a server with tasks", tasked, CALL, 0),
        (f"call with {STEPS} progress messages over HTTP", stepping, {**_STEPS, "_meta": _TOKEN}, STEPS),
    ):
        for revision in (HANDSHAKE, STATELESS):
            row = Row(f"{name}, {revision}", None, False, "ms")
            for side, seconds in _over_http(servers, folder, revision, params, notifications, calls).items():
                rows[side][row] = seconds * 1000
    for side, command in stepping.items():
        rows[side][Row("first progress message of a process, stdio", None, False, "ms")] = _first(command, folder)
    for side, command in commands.items():
        row = Row(f"memory for each of {STREAMS:,} idle streams of sessions", None, False, "kB")
        rows[side][row] = _each_stream([*command, *_listening(side)], folder)
    return rows


class _Ask:
    """A repeated request over stdio that checks each response."""

    def __init__(self, params: Params, notifications: int = 0, *, of_task: bool = False) -> None:
        self._params = params
        self._notifications = notifications
        self._of_task = of_task

    async def __call__(self, process: Process) -> None:
        process.notifications = 0
        for _ in range(BLOCK):
            result = process.ask("tools/call", self._params)["result"]
            if self._of_task:
                result = process.ask("tasks/result", {"taskId": result["task"]["taskId"]})["result"]
            if result.get("isError") or "structuredContent" not in result:
                raise RuntimeError(f"the call failed: {result}")
        if not self._of_task and process.notifications != BLOCK * self._notifications:
            raise RuntimeError(f"{process.notifications} notifications for {BLOCK} calls")


def _over_stdio(servers: Commands, folder: Path, asking: Mapping[str, _Ask], calls: int) -> dict[str, float]:
    """Return the median seconds of a call over stdio."""
    with _processes(servers, folder) as processes:
        asks = {side: partial(asking[side], process) for side, process in processes.items()}
        return _each(asyncio.run(by_turns(asks, max(2, calls // BLOCK))))


@contextmanager
def _processes(servers: Commands, folder: Path) -> Iterator[dict[str, Process]]:
    with ExitStack() as stack:
        processes = {side: Process(command, folder) for side, command in servers.items()}
        for process in processes.values():
            stack.callback(process.stop)
        yield processes


def _over_http(
    servers: Commands, folder: Path, revision: str, params: Params, notifications: int, calls: int
) -> dict[str, float]:
    """Return the median seconds of a call over one HTTP connection."""

    async def ask(connection: Connection) -> None:
        for _ in range(BLOCK):
            messages = await connection.messages(params["name"], params["arguments"], params.get("_meta"))
            if sum(b'"notifications/progress"' in message for message in messages) != notifications:
                raise RuntimeError(f"expected {notifications} notifications: {messages}")
            if b'"structuredContent"' not in messages[-1]:
                raise RuntimeError(f"the call failed: {messages[-1]!r}")

    async def take_turns(ports: Mapping[str, int]) -> dict[str, list[float]]:
        opened = {side: await Connection.open(port, revision) for side, port in ports.items()}
        asks: dict[str, Callable[[], Awaitable[None]]] = {side: partial(ask, each) for side, each in opened.items()}
        try:
            return await by_turns(asks, max(2, calls // BLOCK))
        finally:
            for connection in opened.values():
                connection.close()

    with ExitStack() as stack:
        ports = {
            side: stack.enter_context(serve([*command, *_listening(side)], folder)) for side, command in servers.items()
        }
        return _each(asyncio.run(take_turns(ports)))


def _listening(side: str) -> list[str]:
    """Return the arguments that make a server listen; the caller appends the port to the last argument."""
    return [""] if side == BARE else ["--log-level", "warning", "--http", "127.0.0.1:"]


def _each(times: Mapping[str, Sequence[float]]) -> dict[str, float]:
    return {side: median(blocks) / BLOCK for side, blocks in times.items()}


def _first(command: Sequence[str], folder: Path) -> float:
    """Return the milliseconds from a call to its first progress message, in a process that has already served calls."""
    process = Process(command, folder)
    try:
        for _ in range(BLOCK):
            process.ask("tools/call", dict(CALL))
        return process.seconds_to_message("tools/call", {**_STEPS, "_meta": _TOKEN}) * 1000
    finally:
        process.stop()


def _each_stream(command: Sequence[str], folder: Path) -> float:
    """Return a session's memory in kB, including its stream."""
    _, most = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))  # the server inherits this limit

    async def grow(port: int, pid: int) -> float:
        opened = [await _listen(port) for _ in range(SETTLED)]
        before = memory(pid)
        opened += [await _listen(port) for _ in range(STREAMS)]
        after = memory(pid)
        for connection in opened:
            connection.close()
        return (after - before) * 1024 / STREAMS

    with start_server(command, folder) as server:
        return asyncio.run(grow(server.port, server.pid))


async def _listen(port: int) -> Connection:
    connection = await Connection.open(port, HANDSHAKE)
    await connection.listen()
    return connection
