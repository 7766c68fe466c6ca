"""Measures the memory of a server process, and the cost of a rate limit in Redis, for `docs/deploy.md`.

    python bench/sizing.py [CALLS]

Generates servers with the same tools, with and without a rate limit, and starts Redis. Figures for calls are ratios
within one run, because they depend on the machine. Figures for memory hardly do.
"""

from __future__ import annotations

import asyncio
import json
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from operator import truediv
from pathlib import Path
from typing import Any

from guards import HANDLERS
from over_http import HANDSHAKE, STATELESS, Connection, calls_a_second
from tools import tools

SESSIONS = 500
CONNECTIONS = 16
ROUNDS = 15
ARGUMENTS: dict[str, Any] = {"query": "red", "owner": "ada", "labels": ["a", "b"], "perPage": 10}
TOOL = "search_items_0"


@contextmanager
def start(command: list[str], cwd: Path, port: int) -> Iterator[int]:
    """Start a process, wait until it listens on the port, and yield its id."""
    with subprocess.Popen(command, cwd=cwd, stdout=subprocess.DEVNULL) as process:
        try:
            end = time.monotonic() + 30
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), 1).close()
                    break
                except OSError:
                    if time.monotonic() > end or process.poll() is not None:
                        raise
                    time.sleep(0.05)
            yield process.pid
        finally:
            process.terminate()


def find_port() -> int:
    """Return an unused port."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
        return port


def megabytes(process: int) -> float:
    """Return the resident memory of a process."""
    [line] = [line for line in Path(f"/proc/{process}/status").read_text().splitlines() if line.startswith("VmRSS")]
    return int(line.split()[1]) / 1024


async def _opened(port: int, process: int) -> float:
    """Return a session's memory in kB after one call."""
    before = megabytes(process)
    sessions: list[Connection] = []
    for _ in range(SESSIONS):
        sessions.append(await Connection.open(port, HANDSHAKE))
        await sessions[-1].call(TOOL, ARGUMENTS)
    found = (megabytes(process) - before) * 1024 / SESSIONS
    for session in sessions:
        session.close()
    return found


def main() -> None:
    """Run the measurements, and print them."""
    calls = int(sys.argv[1]) if sys.argv[1:] else 2000
    with tempfile.TemporaryDirectory() as made, ExitStack() as running:
        folder = Path(made)
        (folder / "guarded_handlers.py").write_text(HANDLERS)
        redis = find_port()
        running.enter_context(start(["redis-server", "--port", str(redis), "--save", "", "--dir", made], folder, redis))
        ports: dict[str, int] = {}
        processes: dict[str, int] = {}
        for name, policy, state in (
            ("open", {}, "memory://"),
            ("shared", {}, f"redis://127.0.0.1:{redis}"),
            ("limited", {"policy": {"rateLimit": "1000000/minute"}}, "memory://"),
            ("limited_shared", {"policy": {"rateLimit": "1000000/minute"}}, f"redis://127.0.0.1:{redis}"),
        ):
            manifest = {"stubwright": 1, "server": {"name": name, "version": "1"}, "tools": tools(10), **policy}
            (folder / f"{name}.json").write_text(json.dumps(manifest))
            made_by = [sys.executable, "-m", "stubwright", "generate", "-q", f"{name}.json", "-o", "."]
            subprocess.run(made_by, cwd=folder, check=True)
            port = ports[name] = find_port()
            command = [sys.executable, "-m", f"{name}_mcp", "--handlers", "guarded_handlers:Handlers", "--http"]
            options = [f"127.0.0.1:{port}", "--state", state, "--log-level", "error"]
            processes[name] = running.enter_context(start([*command, *options], folder, port))
        first = {name: megabytes(process) for name, process in processes.items()}
        rates: dict[str, list[float]] = {name: [] for name in ports}
        for _ in range(ROUNDS):
            for name, port in ports.items():
                rates[name].append(
                    asyncio.run(
                        calls_a_second(
                            port, STATELESS, CONNECTIONS, calls // ROUNDS, {"name": TOOL, "arguments": ARGUMENTS}
                        )
                    )
                )
        for name, process in processes.items():
            rate = statistics.median(rates[name])
            ratio = statistics.median(map(truediv, rates[name], rates["open"]))
            print(
                f"{name:15} {first[name]:4.0f} MB at first, {megabytes(process):4.0f} MB later, "
                f"{rate:5.0f} calls a second, {ratio:.2f} of open"
            )
        for name in ("open", "shared"):
            print(f"{name:15} {asyncio.run(_opened(ports[name], processes[name])):4.0f} KB for each session of 2025")


if __name__ == "__main__":
    main()
