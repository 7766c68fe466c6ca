"""Measures state in Redis compared with state in memory, and how calls per second grow with processes that share it.

`compare` generates a package in a folder, and prints ratios. Both servers run at the same time and are called in
alternating blocks. Redis runs without persistence.
"""

from __future__ import annotations

import asyncio
import json
import shutil
import socket
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from functools import partial
from operator import truediv
from pathlib import Path
from typing import Any

from over_http import HANDSHAKE, STATELESS, Connection, calls_a_second, wait_for_port
from servers import serve
from timing import by_turns

BLOCK = 20
"""Consecutive calls of one server before the next server's block."""

PROCESSES = (1, 2, 4)
CONNECTIONS = 16
"""Connections to each process."""

_ITEMS = {"type": "array", "items": {"type": "string"}}
_BASKET = {"basket_id": {"type": "string", "x-handle": "basket"}}
MANIFEST: dict[str, Any] = {
    "stubwright": 1,
    "server": {"name": "stall", "version": "1"},
    "handles": {
        "basket": {
            "state": {"type": "object", "properties": {"items": _ITEMS}, "required": ["items"]},
            "ttl": "1h",
            "idle": "10m",
            "most": 1000,
        }
    },
    "tools": [
        {
            "name": "create_basket",
            "inputSchema": {"type": "object"},
            "outputSchema": {"type": "object", "properties": _BASKET, "required": ["basket_id"]},
        },
        {
            "name": "show_basket",
            "inputSchema": {"type": "object", "properties": _BASKET, "required": ["basket_id"]},
            "stubwright": {"policy": {"rateLimit": "1000000/minute"}},
        },
        {"name": "plain", "inputSchema": {"type": "object"}},
        {
            "name": "limited",
            "inputSchema": {"type": "object"},
            "stubwright": {"policy": {"rateLimit": "1000000/minute"}},
        },
    ],
}
HANDLERS = """
from stall_mcp import BasketState, CreateBasketOutput

class Stall:
    async def create_basket(self, args, ctx):
        return CreateBasketOutput(basket_id=await ctx.handles.basket.create(BasketState(items=["a", "b", "c"])))

    async def show_basket(self, args, ctx):
        return ", ".join(ctx.handles["basket_id"].state.items)

    async def plain(self, args, ctx):
        return "plain"

    limited = plain
"""


def compare(folder: Path, calls: int) -> None:
    """Print the ratios for `calls` calls to each server."""
    if shutil.which("redis-server") is None:
        print("state: not measured, because redis-server is not installed")
        return
    (folder / "stall.json").write_text(json.dumps(MANIFEST))
    (folder / "stall.py").write_text(HANDLERS)
    command = [sys.executable, "-m", "stubwright", "generate", "-q", "stall.json", "-o", "."]
    subprocess.run(command, cwd=folder, check=True)
    server = [sys.executable, "-m", "stall_mcp", "--handlers", "stall:Stall", "--log-level", "error"]
    with _redis(folder) as url:
        states = {"memory": "memory://", "Redis": url}
        with ExitStack() as running:
            ports = {
                name: running.enter_context(serve([*server, "--state", state, "--http", "127.0.0.1:"], folder))
                for name, state in states.items()
            }
            for revision in (HANDSHAKE, STATELESS):
                asyncio.run(_compare(ports, revision, calls))
        for tool in ("plain", "limited"):
            _grow([*server, "--state", url, "--http", "127.0.0.1:"], folder, calls, tool)


async def _compare(ports: dict[str, int], revision: str, calls: int) -> None:
    opened = {name: await Connection.open(port, revision) for name, port in ports.items()}
    baskets = {
        name: (await connection.call("create_basket", {}))["structuredContent"] for name, connection in opened.items()
    }
    for tool, what in (("limited", "a call with a rate limit"), ("show_basket", "one with a limit and a handle")):
        asking = {
            name: partial(_block, connection, tool, baskets[name] if tool == "show_basket" else {})
            for name, connection in opened.items()
        }
        times = await by_turns(asking, max(2, calls // BLOCK))
        cost = {name: statistics.median(found) / BLOCK * 1000 for name, found in times.items()}
        ratio = statistics.median(map(truediv, times["Redis"], times["memory"]))
        memory, redis = cost["memory"], cost["Redis"]
        print(f"{what}, HTTP, {revision}: {redis:.2f} ms in Redis, {ratio:.2f} of memory ({memory:.2f} ms)")
    for connection in opened.values():
        connection.close()


async def _block(connection: Connection, tool: str, arguments: dict[str, Any]) -> None:
    for _ in range(BLOCK):
        await connection.call(tool, arguments)


def _grow(command: Sequence[str], folder: Path, calls: int, tool: str) -> None:
    """Print the calls per second of several processes, each with its own client process."""
    first = 0.0
    for number in PROCESSES:
        with ExitStack() as running:
            ports = [running.enter_context(serve(command, folder)) for _ in range(number)]
            callers = [
                subprocess.Popen([sys.executable, __file__, str(port), tool, str(calls)], stdout=subprocess.PIPE)
                for port in ports
            ]
            rates = [float(caller.communicate()[0]) for caller in callers]
        total = sum(rates)
        first = first or total
        print(f"{tool} calls, HTTP, {STATELESS}, processes: {number}: {total:.0f} a second, {total / first:.2f} of one")


@contextmanager
def _redis(folder: Path) -> Iterator[str]:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    process = subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL)
    try:
        asyncio.run(wait_for_port(port))
        yield f"redis://127.0.0.1:{port}/0"
    finally:
        process.terminate()
        process.wait(15)


if __name__ == "__main__":  # a client process
    call = {"name": sys.argv[2], "arguments": {}}
    print(asyncio.run(calls_a_second(int(sys.argv[1]), STATELESS, CONNECTIONS, int(sys.argv[3]), call)))
