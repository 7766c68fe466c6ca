"""Measures how much CPU time per call the server saves by parsing simple requests before uvicorn, and calls per second.

Compares three paths to the same endpoint with the SDK's bare server: the unmodified listener, the listener with all
requests parsed by uvicorn, and the application in a plain uvicorn. All servers run at the same time and are called in
alternating blocks.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

from idle import cpu_milliseconds
from over_http import HANDSHAKE, STATELESS, Connection
from servers import HttpServer, start_server
from serving import CALL
from table import BARE, OURS, Figures, Row
from timing import by_turns

BLOCK = 128
"""Consecutive calls of one server before the next server's block."""

TARGETS = {1: 2.5, 8: 4.0, 64: 4.0}
"""Target ratio of calls per second to the bare server, by number of connections."""

CPU_TARGET = 0.3
AHEAD, BEHIND, ALONE = "read ahead of uvicorn", "read by uvicorn", "plain uvicorn"

_BEHIND = """
import runpy, sys
from stubwright_runtime.server.transports.http import asgi
from stubwright_runtime.server.transports.http.listener import connections

assert asgi.Endpoint and connections.DirectReader  # both exist before their removal
asgi.Endpoint = lambda *_: None
connections.DirectReader = None  # a connection that wanted one would fail
sys.argv = sys.argv[1:]
runpy.run_module(sys.argv[0], run_name="__main__", alter_sys=True)
"""
_ALONE = """
import sys
import uvicorn
from bench_handlers import Handlers
from bench_mcp import asgi_app

uvicorn.run(asgi_app(Handlers()), port=int(sys.argv[1]), log_level="warning")
"""


class Cost(NamedTuple):
    """Milliseconds of the server's CPU time per call, and calls per second."""

    cpu: float
    rate: float


def measure(commands: Mapping[str, Sequence[str]], folder: Path, calls: int) -> Figures:
    """Return one round's rows."""
    (folder / "behind.py").write_text(_BEHIND)
    (folder / "alone.py").write_text(_ALONE)
    listening = ["--log-level", "warning", "--http", "127.0.0.1:"]
    _, _, *package = commands[OURS]
    servers = {
        BARE: [*commands[BARE], ""],
        AHEAD: [*commands[OURS], *listening],
        BEHIND: [sys.executable, "behind.py", *package, *listening],
        ALONE: [sys.executable, "alone.py", ""],
    }
    rows: Figures = {BARE: {}, OURS: {}}
    with ExitStack() as stack:
        served = {name: stack.enter_context(start_server(command, folder)) for name, command in servers.items()}
        for revision in (HANDSHAKE, STATELESS):
            for connections, target in TARGETS.items():
                costs = asyncio.run(_interleave(served, revision, connections, calls))
                counted = f"{connections} connection{'s' if connections > 1 else ''}"
                for way in (AHEAD, BEHIND, ALONE):
                    cpu = Row(f"CPU of a call over HTTP, {revision}, {counted}, {way}", CPU_TARGET, False, "ms")
                    rate = Row(f"calls a second, {revision}, {counted}, {way}", target, True, "/s")
                    for side, name in ((BARE, BARE), (OURS, way)):
                        rows[side] |= {cpu: costs[name].cpu, rate: costs[name].rate}
    return rows


async def _interleave(
    servers: Mapping[str, HttpServer], revision: str, connections: int, calls: int
) -> dict[str, Cost]:
    cpu: dict[str, list[float]] = {name: [] for name in servers}

    async def repeat(connection: Connection) -> None:
        await connection.repeat(CALL["name"], CALL["arguments"], BLOCK // connections)

    async def ask(name: str, opened: Sequence[Connection]) -> None:
        before = cpu_milliseconds(servers[name].pid)
        await asyncio.gather(*map(repeat, opened))
        cpu[name].append(cpu_milliseconds(servers[name].pid) - before)

    opened = {
        name: [await Connection.open(server.port, revision) for _ in range(connections)]
        for name, server in servers.items()
    }
    asks: dict[str, Callable[[], Awaitable[None]]] = {name: partial(ask, name, each) for name, each in opened.items()}
    try:
        times = await by_turns(asks, max(2, calls // BLOCK))
    finally:
        for connection in (each for some in opened.values() for each in some):
            connection.close()
    return {name: Cost(mean(cpu[name][1:]) / BLOCK, BLOCK / median(times[name])) for name in servers}
