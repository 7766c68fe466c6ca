"""Measures lists and calls on a generated server, compared with the SDK's low-level server and, over HTTP, FastMCP.

    python bench/serving.py [CALLS]
    python bench/serving.py guards [CALLS]
    python bench/serving.py state [CALLS]

Over stdio, the SDK's server uses its own transport. Over HTTP, all servers run on uvicorn on the loopback interface.
Installs FastMCP into `bench/.venv` if necessary. `guards` measures only a rate limit, scopes and an audit file;
`state` measures only state in Redis.
"""

from __future__ import annotations

import asyncio
import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import guards
import state
from over_http import HANDSHAKE, STATELESS, calls_a_second
from peers import fastmcp
from servers import Process, serve
from tools import tools

ROUNDS = 5
HTTP_ROUNDS = 3
LISTS = 9
TOOLS = 1000
CONNECTIONS = (1, 8, 64)
CALL: dict[str, Any] = {
    "name": "search_items_0",
    "arguments": {"query": "red", "owner": "ada", "labels": ["a", "b"], "perPage": 10},
}

BARE = """
import json, sys
import anyio, mcp_types as types
from mcp.server.lowlevel import Server
from mcp.server.stdio import stdio_server

TOOLS = [types.Tool.model_validate(tool) for tool in json.load(open(sys.argv[1]))["tools"]]

async def list_tools(ctx, params):
    return types.ListToolsResult(tools=TOOLS)

async def call_tool(ctx, params):
    found = {"items": [], "total": 0}
    steps = params.arguments.get("steps", 0)
    for step in range(steps):
        await ctx.session.report_progress(step + 1, steps)
    text = types.TextContent(type="text", text=json.dumps(found))
    return types.CallToolResult(content=[text], structured_content=found)

# Over HTTP the SDK looks for headers in a tool's schema; without this it would list all tools for each call.
SCHEMAS = {tool.name: tool.input_schema for tool in TOOLS}
server = Server(
    "bare", version="1", on_list_tools=list_tools, on_call_tool=call_tool, get_tool_input_schema=SCHEMAS.get
)

async def main():
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

if len(sys.argv) > 2:
    import uvicorn
    uvicorn.run(server.streamable_http_app(), port=int(sys.argv[2]), log_level="warning")
else:
    anyio.run(main)
"""
FASTMCP = """
import sys
from typing import Literal
from fastmcp import FastMCP

server = FastMCP("fastmcp")

@server.tool
def search_items_0(
    query: str,
    owner: str,
    labels: list[str] | None = None,
    state: Literal["open", "closed", "all"] = "open",
    page: int = 1,
    perPage: int = 30,
) -> dict:
    return {"items": [], "total": 0}

server.run(transport="http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False, log_level="WARNING")
"""
HANDLERS = """
class Handlers:
    def __getattr__(self, name):
        if not name.startswith("search_items"):
            raise AttributeError(name)
        async def found(args, ctx):
            return {"items": [], "total": 0} if OUTPUT[name] else "[]"
        return found

import bench_mcp
OUTPUT = {tool.method: tool.output_name is not None for tool in bench_mcp.TOOLS.values()}
"""


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds from the start to the first list, for a list, and for a call."""

    first: float
    listing: float
    call: float


def measure(command: Sequence[str], cwd: Path, calls: int) -> Figures:
    """Measure one server once."""
    process = Process(command, cwd)
    try:
        lists = [_timed(lambda: process.ask("tools/list", {})) for _ in range(LISTS)]
        result = process.ask("tools/call", CALL)["result"]
        assert not result.get("isError"), result
        began = time.perf_counter()
        for _ in range(calls):
            process.ask("tools/call", CALL)
        return Figures(process.first, statistics.median(lists), (time.perf_counter() - began) / calls)
    finally:
        process.stop()


def _timed(action: Any) -> float:
    began = time.perf_counter()
    action()
    return time.perf_counter() - began


def over_http(servers: Mapping[str, Sequence[str]], cwd: Path, calls: int) -> None:
    """Print the calls per second of each server over HTTP."""
    rates: dict[tuple[str, int, str], list[float]] = {}
    for _ in range(HTTP_ROUNDS):
        for name, command in servers.items():
            with serve(command, cwd) as port:
                for revision in (HANDSHAKE, STATELESS):
                    for connections in CONNECTIONS:
                        rate = asyncio.run(calls_a_second(port, revision, connections, calls, CALL))
                        rates.setdefault((revision, connections, name), []).append(rate)
    for revision in (HANDSHAKE, STATELESS):
        for connections in CONNECTIONS:
            found = {name: statistics.median(rates[revision, connections, name]) for name in servers}
            ratios = ", ".join(
                f"{found['generated'] / rate:.2f} of {name} ({rate:.0f})"
                for name, rate in found.items()
                if name != "generated"
            )
            print(f"HTTP, {revision}, connections: {connections}: {found['generated']:.0f} calls a second; {ratios}")


def main() -> None:
    """Print the ratios."""
    parts = {"guards": lambda folder, calls: guards.compare(folder, calls, CALL), "state": state.compare}
    only = sys.argv[1] if sys.argv[1:] and sys.argv[1] in parts else None
    given = sys.argv[1 + (only is not None) :]
    calls = int(given[0]) if given else 2000
    with tempfile.TemporaryDirectory() as made_in:
        folder = Path(made_in)
        for name, measure_part in parts.items():
            if only in (None, name):
                measure_part(folder, calls)
        if only is not None:
            return
        listed = tools(TOOLS)
        manifest = {"stubwright": 1, "server": {"name": "bench", "version": "1"}, "tools": listed}
        (folder / "bench.json").write_text(json.dumps(manifest))
        (folder / "bare.py").write_text(BARE)
        command = [sys.executable, "-m", "stubwright", "generate", "-q", "bench.json", "-o", "."]
        subprocess.run(command, cwd=folder, check=True)
        (folder / "handlers.py").write_text(HANDLERS)
        servers = {
            "bare": [sys.executable, "bare.py", "bench.json"],
            "generated": [sys.executable, "-m", "bench_mcp", "--handlers", "handlers:Handlers"],
        }
        runs: dict[str, list[Figures]] = {name: [] for name in servers}
        for _ in range(ROUNDS):  # alternating, so that a busy machine slows both equally
            for name, command in servers.items():
                runs[name].append(measure(command, folder, calls))
        (folder / "fast.py").write_text(FASTMCP)
        web = {
            "bare": [*servers["bare"], ""],
            "generated": [*servers["generated"], "--log-level", "warning", "--http", "127.0.0.1:"],
            "FastMCP": [str(fastmcp()), "fast.py", ""],
        }
        over_http(web, folder, calls)
    for label, field, target in (
        ("from the start to the first list", "first", None),
        (f"a list of {TOOLS:,} tools", "listing", 0.3),
        ("a call", "call", 0.6),
    ):
        bare, made = (statistics.median(getattr(run, field) for run in runs[name]) for name in ("bare", "generated"))
        wanted = "" if target is None else f"  (target: at most {target})"
        print(f"{label}: {made * 1000:.2f} ms, bare {bare * 1000:.2f} ms, ratio {made / bare:.2f}{wanted}")


if __name__ == "__main__":
    main()
