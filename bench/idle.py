"""Measures the CPU time that the event loop watchdog adds to an idle server.

    .venv/bin/python bench/idle.py [SECONDS]

Both servers of a round, with and without the watchdog, are idle at the same time, so that a busy machine slows both
equally. Linux only.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).parent.parent
ROUNDS = 3
WARM_UP = 3.0
"""Seconds for a server to start."""


def main() -> None:
    """Print the CPU time per second of both servers, and the cost of the watchdog."""
    seconds = float(sys.argv[1]) if len(sys.argv) > 1 else 20.0
    rounds = [measure(seconds) for _ in range(ROUNDS)]
    watched, alone = (statistics.median(each) for each in zip(*rounds, strict=True))
    print(f"an idle server: {alone:.2f} ms of CPU time a second; with the watchdog {watched:.2f} ms")
    print(f"the watchdog uses {(watched - alone) / 10:.3f} % of a core")


def measure(seconds: float) -> tuple[float, float]:
    """Return the CPU milliseconds per second that an idle server uses with and without the watchdog."""
    servers = [start(switch) for switch in ("1", "0")]
    try:
        time.sleep(WARM_UP)
        before = [cpu_milliseconds(server.pid) for server in servers]
        time.sleep(seconds)
        after = [cpu_milliseconds(server.pid) for server in servers]
    finally:
        for server in servers:
            server.kill()
            server.wait()
    watched, alone = ((end - begin) / seconds for begin, end in zip(before, after, strict=True))
    return watched, alone


def start(switch: str) -> subprocess.Popen[bytes]:
    """Start the weather server over HTTP."""
    env = {**os.environ, "PYTHONPATH": f"{ROOT / 'generated'}:{ROOT / 'examples'}", "STUBWRIGHT_WATCHDOG": switch}
    command = [sys.executable, "-m", "weather_mcp", "--http", "127.0.0.1:0"]
    return subprocess.Popen(command, env=env, stderr=subprocess.DEVNULL)


def cpu_milliseconds(pid: int) -> float:
    """Return the CPU time of all threads in a process so far. Linux counts nanoseconds."""
    threads = Path(f"/proc/{pid}/task").iterdir()
    return sum(int((thread / "schedstat").read_text().split()[0]) for thread in threads) / 1e6


if __name__ == "__main__":
    main()
