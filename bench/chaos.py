"""Counts lost, repeated and conflicting calls and tasks while replicas, Redis and connections are killed.

    python bench/chaos.py [CALLS] [SERVER …]

Calls `pay` through a proxy in front of four replicas, each call with its own key, and repeats a call until it has a
result, like a client that lost the response. Meanwhile it kills replicas and Redis with SIGKILL, restarts them, and
cuts connections in the proxy. Each effect is a line in a file. Prints for each server how many calls took effect
twice, returned a result without an effect, were reported as unknown, or never got a result.

The servers are `once` (a generated server with `policy: {once: …}`), `plain` (the same without it), `sdk` (the MCP
SDK's), and `fastmcp`, which needs `FASTMCP_PYTHON`, the path of an interpreter with FastMCP.

    python bench/chaos.py 10000 tasks procrastinate celery

These start tasks instead of calls, half of them for a tool with `idempotentHint`, on the default engine or on an engine
of examples/engines/, whose packages must be installed. One task of 100 blocks the event loop for longer than its
lease. A call without a response is not repeated, because it may have created its task; a new call follows. Prints how
many tasks never finished, started twice without `idempotentHint`, changed after they finished, or completed without an
effect. Tasks with `idempotentHint` call `ctx.once` and `ctx.once_in`: prints how many got two keys, booked twice, or
completed without a booking.
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, closing, contextmanager, suppress
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, Final

import httpx2

from over_http import wait_for_port

ROOT: Final = Path(__file__).parent.parent
REPLICAS: Final = 4
CALLERS: Final = 32
TASK_CALLERS: Final = 96  # most of them wait for their task
PATIENCE: Final = 180.0
"""Seconds until a call counts as lost. A lease on a call lasts 30 seconds."""

_CUT: Final = 0.03  # of all connections
_KEY: Final = "io.modelcontextprotocol/idempotencyKey"
_META: Final = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientInfo": {"name": "chaos", "version": "1"},
    "io.modelcontextprotocol/clientCapabilities": {},
}
_HEADERS: Final = {
    "accept": "application/json, text/event-stream",
    "mcp-protocol-version": "2026-07-28",
    "mcp-method": "tools/call",
    "mcp-name": "pay",
}
_TASK_META: Final = {
    **_META,
    "io.modelcontextprotocol/clientCapabilities": {"extensions": {"io.modelcontextprotocol/tasks": {}}},
}
_LEASE: Final = 2.0
_BLOCKING: Final = 0.01  # of all tasks
_ENDED: Final = ("completed", "failed", "cancelled")
ENGINES: Final = {"tasks": "", "celery": "celery_engine:Engine", "procrastinate": "procrastinate_engine:Engine"}

EFFECT: Final = """
async def charge(order):
    await asyncio.sleep(random.uniform(0, 0.05))
    with open("effects", "a") as effects:
        effects.write(order + "\\n")
    await asyncio.sleep(random.uniform(0, 0.05))
    return "paid " + order
"""
HANDLERS: Final = f"""
import asyncio, random
{EFFECT}
class Shop:
    async def pay(self, args, ctx):
        return await charge(args.order)
"""
TASK_HANDLERS: Final = f"""
import asyncio, random, sqlite3, time
from contextlib import closing

def note(event, order, ctx):
    with open("events", "a") as events:
        events.write(f"{{event}} {{order}}\\n")

async def work(args, ctx):
    note("start", args.order, ctx)
    if random.random() < {_BLOCKING}:
        time.sleep({_LEASE} * 1.5)
    await asyncio.sleep(random.uniform(0, 0.5))
    note("effect", args.order, ctx)
    return "paid " + args.order

async def book(order, ctx):
    with closing(sqlite3.connect("books", timeout=30)) as database, database:
        if await ctx.once_in(database, "book"):
            database.execute("INSERT INTO bookings VALUES (?)", [order])

class Shop:
    async def pay(self, args, ctx):
        return await work(args, ctx)

    async def pay_again(self, args, ctx):
        await ctx.once("key", lambda key: note("key", f"{{args.order}} {{key}}", ctx))
        await book(args.order, ctx)
        return await work(args, ctx)
"""
_PEER: Final = """
import asyncio, random, sys
from {module} import {server}
{effect}
server = {server}("shop")

@server.tool()
async def pay(order: str) -> str:
    return await charge(order)

server.run("{transport}", host="127.0.0.1", port=int(sys.argv[1]), stateless_http=True, json_response=True)
"""


@dataclass
class Replicas:
    """Server processes that are killed and restarted at random.

    Attributes:
        interval: Mean seconds between two kills.
        deaths: Number of kills.
    """

    command: Callable[[int], Sequence[str]]
    folder: Path
    ports: list[int] = field(default_factory=list)
    processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    interval: float = 1.0
    deaths: int = 0

    async def start(self) -> None:
        """Start all processes, and wait until they listen."""
        for _ in range(REPLICAS):
            with socket.create_server(("127.0.0.1", 0)) as free:
                self.ports.append(free.getsockname()[1])
        for port in self.ports:
            self._start_one(port)
        for port in self.ports:
            await wait_for_port(port)

    def _start_one(self, port: int) -> None:
        with (self.folder / "log").open("ab") as log:
            self.processes[port] = subprocess.Popen(self.command(port), cwd=self.folder, stderr=log, stdout=log)

    def stop(self) -> None:
        """Stop all processes."""
        for process in self.processes.values():
            process.kill()
            process.wait()

    async def kill_some(self) -> None:
        """Kill one process after another, and restart each immediately."""
        while True:
            await asyncio.sleep(self.interval * random.uniform(0.5, 1.5))
            port = random.choice(self.ports)
            self.processes[port].send_signal(signal.SIGKILL)
            self.processes[port].wait()
            self.deaths += 1
            self._start_one(port)

    async def forward(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Connect a client to a random replica, and cut some connections at random times."""
        with suppress(OSError):
            theirs, ours = await asyncio.open_connection("127.0.0.1", random.choice(self.ports))
            copies = [asyncio.create_task(_copy(reader, ours)), asyncio.create_task(_copy(theirs, writer))]
            limit = random.uniform(0, 0.2) if random.random() < _CUT else None
            await asyncio.wait(copies, timeout=limit, return_when=asyncio.FIRST_COMPLETED)
            for copy in copies:
                copy.cancel()
            ours.transport.abort()
        writer.transport.abort()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(1 << 16):
            writer.write(data)
            await writer.drain()


class Redis:
    """A Redis server that syncs every write to disk, and is killed twice during a run."""

    def __init__(self, folder: Path) -> None:
        with socket.create_server(("127.0.0.1", 0)) as free:
            self.port: int = free.getsockname()[1]
        options = ["--save", "", "--appendonly", "yes", "--appendfsync", "always"]
        self._command = ["redis-server", "--port", str(self.port), "--dir", str(folder), *options]
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        """Start Redis."""
        self._process = subprocess.Popen(self._command, stdout=subprocess.DEVNULL)

    def stop(self) -> None:
        """Kill Redis."""
        assert self._process is not None
        self._process.kill()
        self._process.wait()

    async def kill_twice(self, seconds: float) -> None:
        """Kill Redis twice within `seconds`, and restart it after half a second."""
        for _ in range(2):
            await asyncio.sleep(seconds / 3)
            self.stop()
            await asyncio.sleep(0.5)
            self.start()


async def call(http: httpx2.AsyncClient, url: str, number: int) -> str:
    """Call `pay` until it returns a result. Return its text, or an empty string after the deadline."""
    order = f"order-{number}"
    params = {"name": "pay", "arguments": {"order": order}, "_meta": {**_META, _KEY: order}}
    body = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        with suppress(httpx2.RequestError, ValueError, KeyError):
            response = await http.post(url, json=body, headers=_HEADERS)
            result = response.json()["result"]
            text = str(result["content"][0]["text"])
            # The store is unavailable, or another attempt still runs: a client should retry after both errors.
            if not result.get("isError") or "is unknown whether" in text:
                return text
        await asyncio.sleep(random.uniform(0.05, 0.3))
    return ""


@asynccontextmanager
async def _serve(name: str, calls: int, folder: Path) -> AsyncGenerator[tuple[httpx2.AsyncClient, str, Replicas]]:
    """Serve during a block while killing replicas and Redis."""
    redis = Redis(folder)
    os.environ["CELERY_BROKER_URL"] = f"redis://127.0.0.1:{redis.port}/1"
    replicas = Replicas(partial(_make_command, name, redis.port), folder, interval=3.0 if name in ENGINES else 1.0)
    proxy = await asyncio.start_server(replicas.forward, "127.0.0.1", 0)
    url = f"http://127.0.0.1:{proxy.sockets[0].getsockname()[1]}/mcp"
    limits = httpx2.Limits(max_connections=TASK_CALLERS, max_keepalive_connections=0)
    try:
        redis.start()
        await wait_for_port(redis.port)
        await replicas.start()
        killing = asyncio.create_task(replicas.kill_some())
        losing = asyncio.create_task(redis.kill_twice(calls / 200))
        async with httpx2.AsyncClient(timeout=60, limits=limits) as http:
            yield http, url, replicas
        await losing
        killing.cancel()
    finally:
        replicas.stop()
        redis.stop()
        proxy.close()


async def run(name: str, calls: int, folder: Path) -> None:
    """Run one server, and print the outcomes of its calls."""
    places = asyncio.Semaphore(CALLERS)
    began = time.monotonic()
    async with _serve(name, calls, folder) as (http, url, replicas):

        async def pay(number: int) -> str:
            async with places:
                return await call(http, url, number)

        texts = await asyncio.gather(*map(pay, range(calls)))
        seconds = time.monotonic() - began
    effects = Counter((folder / "effects").read_text().split())
    paid = {f"order-{number}" for number, text in enumerate(texts) if text.startswith("paid")}
    unknown = sum("is unknown whether" in text for text in texts)
    print(
        f"{name}: {calls} calls in {seconds:.0f} s, {replicas.deaths} replicas killed: "
        f"{sum(count > 1 for count in effects.values())} took effect twice, {len(paid - effects.keys())} have a result "
        f"without an effect, {unknown} are reported as unknown, {texts.count('')} are lost"
    )


async def start_task(http: httpx2.AsyncClient, url: str, number: int) -> str:
    """Call a tool until a response contains a task. Return its ID, or an empty string after the deadline.

    A call without a response may have created its task, so each call uses a new order.
    """
    name = "pay_again" if number % 2 else "pay"
    end, attempt = time.monotonic() + PATIENCE, 0
    while time.monotonic() < end:
        arguments = {"order": f"{name}-{number}-{attempt}"}
        attempt += 1
        with suppress(httpx2.RequestError, ValueError, KeyError):
            result = await _ask(http, url, "tools/call", name, name=name, arguments=arguments)
            return str(result["taskId"])
        await asyncio.sleep(random.uniform(0.05, 0.3))
    return ""


async def follow_task(http: httpx2.AsyncClient, url: str, task: str) -> dict[str, Any]:
    """Poll a task until it finishes. Return it, or its current state after the deadline."""
    end, state = time.monotonic() + PATIENCE, dict[str, Any]()
    while state.get("status") not in _ENDED and time.monotonic() < end:
        with suppress(httpx2.RequestError, ValueError, KeyError):
            state = await _ask(http, url, "tasks/get", task, taskId=task)
        await asyncio.sleep(random.uniform(1, 2))
    return state


async def _ask(http: httpx2.AsyncClient, url: str, method: str, name: str, /, **params: Any) -> dict[str, Any]:
    body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": {**params, "_meta": _TASK_META}}
    response = await http.post(url, json=body, headers={**_HEADERS, "mcp-method": method, "mcp-name": name})
    return dict(response.json()["result"])


async def run_tasks(name: str, calls: int, folder: Path) -> None:
    """Run tasks on one engine, and print their outcomes."""
    places = asyncio.Semaphore(TASK_CALLERS)
    began = time.monotonic()
    async with _serve(name, calls, folder) as (http, url, replicas):

        async def pay(number: int) -> tuple[str, dict[str, Any]]:
            async with places:
                task = await start_task(http, url, number)
                return task, await follow_task(http, url, task) if task else {}

        async def read_again(task: str) -> dict[str, Any]:
            async with places:
                return await follow_task(http, url, task)

        ends = dict(await asyncio.gather(*map(pay, range(calls))))
        seconds = time.monotonic() - began
        ended = {task: state for task, state in ends.items() if state.get("status") in _ENDED}
        later = dict(zip(ended, await asyncio.gather(*map(read_again, ended)), strict=True))
    lines = [tuple(line.split()) for line in (folder / "events").read_text().splitlines()]
    events = Counter(line[:2] for line in lines)
    keys = Counter(order for order, _ in {line[1:] for line in lines if line[0] == "key"})
    with closing(sqlite3.connect(folder / "books")) as database:
        bookings = Counter(order for (order,) in database.execute("SELECT order_id FROM bookings"))
    twice = [order for (event, order), count in events.items() if event == "start" and count > 1]
    completed, failures = [], Counter[str]()
    for state in ended.values():
        result = state.get("result") or {"isError": True}
        if state["status"] == "completed" and not result.get("isError"):
            completed.append(result["content"][0]["text"])
        else:  # the task or its tool failed
            failures[state["error"]["message"] if "error" in state else result["content"][0]["text"]] += 1
    repeated = {order for text in completed if (order := text.removeprefix("paid ")).startswith("pay_again")}
    print(
        f"{name}: {calls} tasks in {seconds:.0f} s, {replicas.deaths} replicas killed: "
        f"{calls - len(ended)} never ended, "
        f"{sum(not order.startswith('pay_again') for order in twice)} without idempotentHint started twice "
        f"({len(twice)} with or without), {sum(later[task] != state for task, state in ended.items())} changed after "
        f"their end, {sum(('effect', text.removeprefix('paid ')) not in events for text in completed)} completed "
        f"without an effect; {sum(count > 1 for count in keys.values())} have two keys, "
        f"{sum(count > 1 for count in bookings.values())} booked twice, {len(repeated - bookings.keys())} completed "
        f"without a booking, of {len(repeated)}; {len(completed)} completed, "
        f"{sum(failures.values())} failed: {dict(failures)}"
    )


def _make_command(name: str, redis: int, port: int) -> list[str]:
    """Return the command line of a replica."""
    if name in ("once", "plain", *ENGINES):
        options = ["--state", f"redis://127.0.0.1:{redis}/0", "--http", f"127.0.0.1:{port}", "--log-level", "error"]
        if ENGINES.get(name):
            options += ["--tasks", ENGINES[name]]
        return [sys.executable, "-m", "shop_mcp", "--handlers", "shop:Shop", *options]
    python = os.environ["FASTMCP_PYTHON"] if name == "fastmcp" else sys.executable
    return [python, "peer.py", str(port)]


def prepare(name: str, folder: Path) -> None:
    """Write a server's files to a folder."""
    if name in ENGINES:
        schema = {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]}
        task = {"execution": {"taskSupport": "required"}, "stubwright": {"task": {"lease": "2s", "most": 100_000}}}
        again = {"annotations": {"idempotentHint": True}}
        tools = [
            {"name": "pay", "inputSchema": schema, **task},
            {"name": "pay_again", "inputSchema": schema, **again, **task},
        ]
        with closing(sqlite3.connect(folder / "books")) as database, database:
            database.execute("CREATE TABLE stubwright_once (key TEXT PRIMARY KEY)")
            database.execute("CREATE TABLE bookings (order_id TEXT)")
        _generate(folder, tools, TASK_HANDLERS, storage={"maxBytesPerPrincipal": "128MiB", "maxBytes": "512MiB"})
        return
    if name in ("once", "plain"):
        tool: dict[str, Any] = {
            "name": "pay",
            "inputSchema": {"type": "object", "properties": {"order": {"type": "string"}}, "required": ["order"]},
        }
        if name == "once":
            tool["stubwright"] = {"policy": {"once": {"key": "request"}}}
        _generate(folder, [tool], HANDLERS)
        return
    values = {"module": "mcp.server", "server": "MCPServer", "transport": "streamable-http"}
    if name == "fastmcp":
        values = {"module": "fastmcp", "server": "FastMCP", "transport": "http"}
    (folder / "peer.py").write_text(_PEER.format(effect=EFFECT, **values))


def _generate(folder: Path, tools: Sequence[dict[str, Any]], handlers: str, **more: Any) -> None:
    manifest = {"stubwright": 1, "server": {"name": "shop", "version": "1"}, "tools": tools, **more}
    (folder / "shop.json").write_text(json.dumps(manifest))
    (folder / "shop.py").write_text(handlers)
    command = [sys.executable, "-m", "stubwright", "generate", "-q", "shop.json", "-o", "."]
    subprocess.run(command, cwd=folder, check=True)


@contextmanager
def _queue(name: str, folder: Path) -> Iterator[None]:
    """Run the services that an engine needs during a block."""
    os.environ["PYTHONPATH"] = str(ROOT / "examples" / "engines")
    if name != "procrastinate":
        yield
        return
    sys.path.append(str(ROOT / "tests" / "support"))
    import postgres_server

    with postgres_server.run_postgres() as variables:
        os.environ.update(variables)
        schema = ["procrastinate", "--app", "procrastinate_engine.app", "schema", "--apply"]
        subprocess.run([sys.executable, "-m", *schema], check=True, cwd=folder, capture_output=True)
        yield


def main(calls: int, names: Sequence[str]) -> None:
    """Run each server."""
    for name in names:
        with tempfile.TemporaryDirectory() as folder:
            prepare(name, Path(folder))
            with _queue(name, Path(folder)):
                asyncio.run((run_tasks if name in ENGINES else run)(name, calls, Path(folder)))


if __name__ == "__main__":
    given = sys.argv[1:]
    main(int(given[0]) if given else 10_000, given[1:] or ["once", "plain", "sdk"])
