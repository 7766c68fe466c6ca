"""Measures the commands that developers run most often.

    python bench/commands.py
    python bench/commands.py unchanged [TOOLS | MANIFEST …]
    python bench/commands.py contracts [TOOLS]

The first form prints wall-clock times as multiples of starting Python. Targets: `--help` at most 8, `check` on the
weather manifest and an unchanged `generate` at most 25.

`unchanged` prints the CPU time and memory of commands after `generate`, as multiples of an unchanged `generate`: `docs`
without and with an existing page; `mock` until it has listed its tools and answered a call. Its arguments are numbers
of tools (default: 20, 1000 and 10000) or paths of self-contained manifests. Targets: at most 1.5 for 20 and
1,000 tools, except for the first page, which renders the whole manifest.

`contracts` prints the CPU time of `lock` and of `verify`, for an unchanged server and for a tool with one more required
argument. The server has TOOLS tools (default: 100) and is a script without libraries, measured separately. Target: at
most 1.5 s.
"""

from __future__ import annotations

import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from scale import family, one_json
from stubwright.jsonschema import instances
from timing import medians
from tools import tools

ROOT = Path(__file__).parents[1]
STUBWRIGHT = str(Path(sys.executable).with_name("stubwright"))
LIMITS = {"--help": 8, "check": 25, "generate, unchanged": 25}
LIMIT = 1.5
MOST_CPU = 1.5
ROUNDS = 3
_TICK = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, slots=True)
class Use:
    """A command's CPU seconds, including child processes, and the largest process's peak memory in MiB."""

    seconds: float
    memory: float


def run(command: Sequence[str], folder: Path) -> Use:
    """Run a command to completion."""
    process = subprocess.Popen(command, cwd=folder, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    _, status, used = os.wait4(process.pid, 0)
    if status:
        raise RuntimeError(f"{command} failed")
    return Use(used.ru_utime + used.ru_stime, used.ru_maxrss / 1024)


def mock(manifest: str, folder: Path) -> Use:
    """Start a mock, list its tools, and call the first tool."""
    process = subprocess.Popen(
        [STUBWRIGHT, "mock", manifest], cwd=folder, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
    _ask(process, "initialize", about)
    first = _ask(process, "tools/list", {})["tools"][0]
    arguments = instances.make(first["inputSchema"], "bench")
    _ask(process, "tools/call", {"name": first["name"], "arguments": arguments})
    used = [_read_usage(pid) for pid in family(process.pid)]
    process.communicate()
    return Use(sum(each.seconds for each in used), max(each.memory for each in used))


def _ask(process: subprocess.Popen[str], method: str, params: Mapping[str, Any]) -> Any:
    """Send a request to a server over stdio, and return its result."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(json.dumps({"jsonrpc": "2.0", "id": method, "method": method, "params": params}) + "\n")
    process.stdin.flush()
    while (message := json.loads(process.stdout.readline())).get("id") != method:
        pass
    return message["result"]


def _read_usage(pid: int) -> Use:
    """Return a process's usage so far (proc(5)), including children that have exited."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    peak = next(line for line in Path(f"/proc/{pid}/status").read_text().splitlines() if line.startswith("VmHWM:"))
    return Use(sum(map(int, fields[11:15])) / _TICK, int(peak.split()[1]) / 1024)


def least(measure: Callable[[], Use]) -> Use:
    """Return the minimum over several rounds, which other processes disturb least."""
    uses = [measure() for _ in range(ROUNDS)]
    return Use(min(use.seconds for use in uses), max(use.memory for use in uses))


def unchanged(given: str) -> None:
    """Print the rows for a manifest, or for a number of tools."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ["STUBWRIGHT_CACHE_DIR"] = str(folder / "cache")
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)  # otherwise each run compiles the bytecode of stubwright
        manifest = one_json(folder, tools(int(given))) if given.isdigit() else Path(given).name
        if not given.isdigit():
            shutil.copy(given, folder)
        run([STUBWRIGHT, "generate", manifest], folder)
        docs = [STUBWRIGHT, "docs", manifest, "-o", "pages"]

        def first_page() -> Use:
            shutil.rmtree(folder / "pages", ignore_errors=True)
            return run(docs, folder)

        uses = {
            "generate": least(lambda: run([STUBWRIGHT, "generate", manifest], folder)),
            "docs, first page": least(first_page),
            "docs, again": least(lambda: run(docs, folder)),
            "mock, list and call": least(lambda: mock(manifest, folder)),
        }
    base = uses["generate"]
    for command, use in uses.items():
        target = f"≤ {LIMIT}" if given in ("20", "1000") and command not in ("generate", "docs, first page") else ""
        print(
            f"{manifest if not given.isdigit() else given:20}{command:20}{use.seconds:8.2f}"
            f"{use.seconds / base.seconds:8.2f}{use.memory:8.0f}{use.memory / base.memory:8.2f}{target:>8}",
            flush=True,
        )


def contracts(count: int) -> None:
    """Print the CPU seconds of `lock` and `verify` for a number of tools."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
        listed = tools(count)
        (folder / "server.py").write_text(_SERVER)
        (folder / "old.json").write_text(json.dumps(listed))
        listed[count // 2]["inputSchema"]["required"].append("since")
        (folder / "new.json").write_text(json.dumps(listed))
        server = [sys.executable, "-S", "-E", "server.py"]
        verify = [STUBWRIGHT, "verify", "contract.yaml", "--fail-on", "never", "--", *server]
        commands = {
            "lock": [STUBWRIGHT, "lock", "-o", "contract.yaml", "--", *server, "old.json"],
            "verify, unchanged": [*verify, "old.json"],
            "verify, one changed": [*verify, "new.json"],
        }
        taken: dict[str, list[tuple[float, float]]] = {command: [] for command in commands}
        for turn in range(6):
            for command, words in commands.items():
                if command == "lock":
                    (folder / "contract.yaml").unlink(missing_ok=True)
                seconds = run(words, folder).seconds
                servers = float((folder / "cpu").read_text())
                if turn:
                    taken[command].append((seconds - servers, servers))
    print(f"{'command':24}{'own CPU s':>12}{'server':>10}{'target':>10}")
    for command, pairs in taken.items():
        own, servers = (statistics.median(each) for each in zip(*pairs, strict=True))
        print(f"{command:24}{own:12.2f}{servers:10.2f}{f'≤ {MOST_CPU}':>10}")


_SERVER = """
import json, sys, time
for line in sys.stdin:
    message = json.loads(line)
    if message["method"] == "initialize":
        version, about = message["params"]["protocolVersion"], {"name": "many", "version": "1"}
        result = {"protocolVersion": version, "capabilities": {"tools": {}}, "serverInfo": about}
    elif message["method"] == "tools/list":
        result = {"tools": json.load(open(sys.argv[1]))}
    else:
        result = None
    if "id" in message:
        answer = {"error": {"code": -32601, "message": "unknown"}} if result is None else {"result": result}
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}), flush=True)
open("cpu", "w").write(str(time.process_time()))
"""


def main() -> None:
    """Print a table of ratios."""
    if sys.argv[1:2] == ["contracts"]:
        contracts(int(sys.argv[2]) if sys.argv[2:] else 100)
        return
    if sys.argv[1:2] == ["unchanged"]:
        print(f"{'tools':20}{'command':20}{'CPU s':>8}{'ratio':>8}{'MiB':>8}{'ratio':>8}{'target':>8}")
        for given in sys.argv[2:] or ["20", "1000", "10000"]:
            unchanged(given)
        return
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "specs").mkdir()
        for file in ("weather.yaml", "weather.md"):
            shutil.copy(ROOT / "specs" / file, folder / "specs")
        times = medians(
            {
                "python -c pass": [sys.executable, "-c", "pass"],
                "--help": [STUBWRIGHT, "--help"],
                "check": [STUBWRIGHT, "check", "specs/weather.yaml"],
                "generate, unchanged": [STUBWRIGHT, "generate", "specs/weather.yaml"],
            },
            rounds=15,
            folder=folder,
        )
    base = times["python -c pass"]
    print(f"{'command':24}{'median ms':>12}{'ratio':>10}{'target':>10}")
    for command, seconds in times.items():
        target = f"≤ {LIMITS[command]}" if command in LIMITS else ""
        print(f"{command:24}{seconds * 1000:12.1f}{seconds / base:10.1f}{target:>10}")


if __name__ == "__main__":
    main()
