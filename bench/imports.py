"""Measures imports of `weather_mcp`, its client and its server, and a cold start, compared with an earlier commit.

    python bench/imports.py [COMMIT] [--rounds N]

Both commits run with the same libraries, in turns. `-X importtime` reports the modules and the sum of their own times.
A cold start ends with the response to `tools/list` over stdio. On a busy machine, compare CPU time instead of
wall-clock time.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import statistics
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

IMPORTS: Mapping[str, list[str]] = {
    "import weather_mcp": ["-c", "import weather_mcp"],
    "WeatherClient": ["-c", "from weather_mcp import WeatherClient"],
    "python -m weather_mcp": ["-m", "weather_mcp"],
}

FOLDERS = ("generated", "examples", "runtime")

HELLO = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "bench", "version": "1"}}
MESSAGES = "".join(
    json.dumps({"jsonrpc": "2.0", **message}) + "\n"
    for message in (
        {"id": 0, "method": "initialize", "params": HELLO},
        {"method": "notifications/initialized"},
        {"id": 1, "method": "tools/list"},
    )
)
_LINE = re.compile(r"^import time:\s+(\d+) \|\s+\d+ \|\s+([\w.]+)$", re.MULTILINE)


def list_imports(words: list[str], env: Mapping[str, str]) -> dict[str, int]:
    """Return the modules that a command imports, with their own microseconds; a server gets end of input."""
    command = [sys.executable, "-X", "importtime", *words]
    done = subprocess.run(command, env=env, input="", capture_output=True, text=True, check=True, cwd="/")
    return {name: int(own) for own, name in _LINE.findall(done.stderr)}


def time_start(env: Mapping[str, str]) -> dict[str, float]:
    """Measure a server until it has answered `tools/list`."""
    begin = time.perf_counter()
    with subprocess.Popen(
        [sys.executable, "-m", "weather_mcp"],
        env=env,
        cwd="/",
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(MESSAGES)
        process.stdin.flush()
        while json.loads(process.stdout.readline()).get("id") != 1:
            pass
        taken = time.perf_counter() - begin
        status = Path(f"/proc/{process.pid}/status").read_text()
        ticks = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()[11:13]
        process.stdin.close()
    memory = re.search(r"^VmRSS:\s+(\d+)", status, re.MULTILINE)
    assert memory is not None
    return {
        "cold start: ms": taken * 1000,
        "cold start: ms of the processor": sum(map(int, ticks)) * 1000 / os.sysconf("SC_CLK_TCK"),
        "cold start: MiB": int(memory[1]) / 1024,
    }


def environment(root: Path) -> dict[str, str]:
    """Return the paths of packages and handlers, after compiling their bytecode."""
    path = os.pathsep.join(str(root / name) for name in FOLDERS)
    return {"PATH": os.environ["PATH"], "PYTHONPATH": path}


def main() -> None:
    """Run the rounds, and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("commit", nargs="?", help="an earlier commit to compare with")
    parser.add_argument("--rounds", type=int, default=15)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        trees = {"here": ROOT}
        if options.commit:
            tree = ["git", "ls-tree", "--name-only", options.commit, *FOLDERS]  # the earliest commits have no runtime/
            names = subprocess.run(tree, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split()
            archive = ["git", "archive", options.commit, *names]
            data = subprocess.run(archive, cwd=ROOT, check=True, capture_output=True).stdout
            with tarfile.open(fileobj=io.BytesIO(data)) as tar:
                tar.extractall(folder, filter="data")
            trees[options.commit] = Path(folder)
        found: dict[str, dict[str, list[float]]] = {name: defaultdict(list) for name in trees}
        for turn in range(options.rounds + 1):
            for name, root in trees.items():
                env = environment(root)
                rows: dict[str, float] = {}
                for what, words in IMPORTS.items():
                    modules = list_imports(words, env)
                    rows[f"{what}: modules"] = len(modules)
                    rows[f"{what}: ms"] = sum(modules.values()) / 1000
                rows |= time_start(env)
                for what, value in rows.items() if turn else ():  # the first turn compiles the bytecode
                    found[name][what].append(value)
    print("|", " | ".join(["", *trees]), "|")
    print("|---" * (len(trees) + 1) + "|")
    for what in found["here"]:
        medians = (statistics.median(found[name][what]) for name in trees)
        print("|", " | ".join([what, *(f"{value:.0f}" for value in medians)]), "|")


if __name__ == "__main__":
    main()
