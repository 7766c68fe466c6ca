"""Measures starting, calling and serving: a generated server and the SDK's bare server, which does not validate.

    python bench/direct.py [TOOLS ...] [--rounds N] [--calls N] [--only PART ...]

Prints a table with the median ratio of the rounds, its spread, and both figures of the last round. Each round measures
both servers one after the other, or call by call, so that other load on the machine slows both. Only `stdio` is
measured with every number of tools; the other parts use the first number.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path

import features
import reader
from guards import AUDIENCE, SCOPE, generate, run_issuer
from idle import cpu_milliseconds
from over_http import HANDSHAKE, STATELESS, calls_a_second
from servers import Process, serve
from serving import BARE, CALL, HANDLERS
from table import Figures, Row, table
from tools import tools

CALLS = 400
PACKAGE = "bench_mcp"
PARTS = ("stdio", "http", "features", "reader")


def make_servers(folder: Path, count: int) -> dict[str, list[str]]:
    """Return the commands for both servers with this number of tools."""
    document = {"stubwright": 1, "server": {"name": "bench", "version": "1"}, "tools": tools(count)}
    (folder / "bench.json").write_text(json.dumps(document))
    (folder / "tools.json").write_text(json.dumps(document))
    (folder / "bare.py").write_text(BARE)
    (folder / "bench_handlers.py").write_text(HANDLERS)
    stubwright = Path(sys.executable).parent / "stubwright"
    subprocess.run([stubwright, "generate", "bench.json", "-o", "."], cwd=folder, check=True, capture_output=True)
    return {
        "bare": [sys.executable, "bare.py", "tools.json"],
        "ours": [sys.executable, "-m", PACKAGE, "--handlers", "bench_handlers:Handlers"],
    }


def over_stdio(commands: Mapping[str, Sequence[str]], folder: Path, count: int) -> Figures:
    """Measure each server's start, first call, calls and memory once."""
    of = f"{count:,} tool{'s' if count > 1 else ''}"
    figures: Figures = {}
    for name, command in commands.items():
        process = Process(command, folder)
        try:
            first = time_calls(process, 1)
            time_calls(process, 100)
            before = cpu_milliseconds(process.pid)
            call = time_calls(process, CALLS) / CALLS
            cpu = (cpu_milliseconds(process.pid) - before) / CALLS
            time_calls(process, 899 - CALLS)
            figures[name] = {
                Row(f"start to first `tools/list`, {of}", 0.25, False, "s"): process.first,
                Row(f"first call of a cold server, {of}", 0.5, False, "s"): process.first + first,
                Row(f"call over stdio, {of}", 0.3, False, "ms"): call * 1000,
                Row(f"CPU of a call over stdio, {of}", 0.15, False, "ms"): cpu,
                Row(f"memory after 1,000 calls, {of}", 0.7, False, "MB"): process.memory(),
            }
        finally:
            process.stop()
    return figures


def time_calls(process: Process, count: int) -> float:
    """Return the seconds for a number of calls."""
    began = time.perf_counter()
    for _ in range(count):
        process.ask("tools/call", CALL)
    return time.perf_counter() - began


def over_http(commands: Mapping[str, Sequence[str]], folder: Path, calls: int) -> Figures:
    """Measure calls per second of both once: with httptools, with h11, and with a token, scopes and a rate limit."""
    (folder / "without").mkdir(exist_ok=True)
    (folder / "without" / "httptools.py").write_text("raise ImportError")
    h11 = ["env", f"PYTHONPATH={folder / 'without'}"]
    bare, ours = [*commands["bare"], ""], [*commands["ours"], "--http", "127.0.0.1:"]
    figures: Figures = {"bare": {}, "ours": {}}
    with run_issuer() as (url, token):
        auth = {"issuer": url, "audience": AUDIENCE, "jwksUri": f"{url}/keys"}
        generate(folder, "guarded", {"auth": auth, "policy": {"rateLimit": "1000000/minute", "scopes": [SCOPE]}})
        guarded = [word.replace(PACKAGE, "guarded_mcp") for word in ours]
        for kind, commands_of_kind, headers, targets in (
            ("", (bare, ours), {}, reader.TARGETS.values()),
            (", h11", ([*h11, *bare], [*h11, *ours]), {}, (2.0, 2.5, 3.0)),
            (", guarded", (bare, guarded), {"Authorization": f"Bearer {token}"}, (2.0, 3.0, 3.0)),
        ):
            for name, command in zip(figures, commands_of_kind, strict=True):
                with serve(command, folder) as port:
                    for revision in (HANDSHAKE, STATELESS):
                        for connections, target in zip(reader.TARGETS, targets, strict=True):
                            counted = f"{connections} connection{'s' if connections > 1 else ''}"
                            row = Row(f"calls a second, {revision}, {counted}{kind}", target, True, "/s")
                            rate = calls_a_second(port, revision, connections, calls, CALL, headers)
                            figures[name][row] = asyncio.run(rate)
    return figures


def main() -> None:
    """Run the rounds, and print the table."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("tools", nargs="*", type=int, default=[1, 100, 1000])
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--calls", type=int, default=1500)
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS, metavar="PART", help=", ".join(PARTS))
    options = parser.parse_args()
    os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # otherwise each start compiles the same bytecode
    lines: list[str] = []
    for count in options.tools:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            commands = make_servers(folder, count)
            measures: dict[str, Callable[[], Figures]] = {"stdio": partial(over_stdio, commands, folder, count)}
            if count == options.tools[0]:
                measures |= {
                    "http": partial(over_http, commands, folder, options.calls),
                    "features": partial(features.measure, commands, folder, CALLS // 2),
                    "reader": partial(reader.measure, commands, folder, options.calls),
                }
            for measure in (measures[part] for part in options.only if part in measures):
                measure()  # what the first start compiles and caches
                lines += [line for line in table([measure() for _ in range(options.rounds)]) if line not in lines]
    print("\n".join(lines))


if __name__ == "__main__":
    main()
