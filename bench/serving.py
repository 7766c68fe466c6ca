"""How fast a generated server lists and calls, beside the SDK's low-level server on its own stdio.

python bench/serving.py [CALLS]
"""

from __future__ import annotations

import json
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tools import tools

ROUNDS = 5
LISTS = 9
TOOLS = 1000
CALL = {"name": "search_items_0", "arguments": {"query": "red", "owner": "ada", "labels": ["a", "b"], "perPage": 10}}

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
    text = types.TextContent(type="text", text=json.dumps(found))
    return types.CallToolResult(content=[text], structured_content=found)

async def main():
    server = Server("bare", version="1", on_list_tools=list_tools, on_call_tool=call_tool)
    async with stdio_server() as (read, write):
        await server.run(read, write, server.create_initialization_options())

anyio.run(main)
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


class Process:
    """A server over stdio, spoken to line by line, after its handshake and its first list."""

    def __init__(self, command: Sequence[str], cwd: Path) -> None:
        began = time.perf_counter()
        self._process = subprocess.Popen(command, cwd=cwd, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        self._number = 0
        hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
        self.ask("initialize", hello)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})
        self.ask("tools/list", {})
        self.first = time.perf_counter() - began

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        """The result of a request."""
        self._number += 1
        self._send({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self._process.stdout is not None
        while True:
            answer: dict[str, Any] = json.loads(self._process.stdout.readline())
            if answer.get("id") == self._number:
                return answer

    def _send(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message).encode() + b"\n")
        self._process.stdin.flush()

    def stop(self) -> None:
        """End it by closing its input."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(10)


@dataclass(frozen=True, slots=True)
class Figures:
    """Seconds: from the start to the first list, for a list, and for a call."""

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


def main() -> None:
    """Print the ratios."""
    calls = int(sys.argv[1]) if len(sys.argv) > 1 else 2000
    with tempfile.TemporaryDirectory() as made_in:
        folder = Path(made_in)
        listed = tools(TOOLS)
        manifest = {"toolwright": 1, "server": {"name": "bench", "version": "1"}, "tools": listed}
        (folder / "bench.json").write_text(json.dumps(manifest))
        (folder / "bare.py").write_text(BARE)
        command = [sys.executable, "-m", "toolwright", "generate", "-q", "bench.json", "-o", "."]
        subprocess.run(command, cwd=folder, check=True)
        (folder / "handlers.py").write_text(HANDLERS)
        servers = {
            "bare": [sys.executable, "bare.py", "bench.json"],
            "generated": [sys.executable, "-m", "bench_mcp", "--handlers", "handlers:Handlers"],
        }
        runs: dict[str, list[Figures]] = {name: [] for name in servers}
        for _ in range(ROUNDS):  # by turns, so that a busy machine slows both alike
            for name, command in servers.items():
                runs[name].append(measure(command, folder, calls))
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
