"""Attacks rate limits through replicas whose clocks differ by minutes; Redis' clock must enforce the rate.

Starts Redis and four servers under libfaketime, and calls all of them concurrently, at 100 per minute and at 20 per
second. Counts the admitted calls in Redis itself (`MONITOR`), and checks the retry times in the rejections.
"""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))

from over_http import STATELESS, Connection, wait_for_port

SKEWS: Final = (-61, 0, 17, 61)
"""The offsets of the replicas' clocks in seconds."""

CONNECTIONS: Final = 4
"""Connections to each replica."""

MANIFEST: Final[dict[str, Any]] = {
    "stubwright": 1,
    "server": {"name": "clocks", "version": "1"},
    "tools": [
        {"name": name, "inputSchema": {"type": "object"}, "stubwright": {"policy": {"rateLimit": rate}}}
        for name, rate in (("minutely", "100/minute"), ("secondly", "20/second"))
    ],
}
HANDLERS: Final = """
class Clocks:
    async def minutely(self, args, ctx):
        return "in"

    secondly = minutely
"""


class Hits:
    """The hits that Redis records, as microseconds of its clock."""

    def __init__(self, port: int) -> None:
        """Start monitoring."""
        self.times: list[int] = []
        self._link = socket.create_connection(("127.0.0.1", port))
        self._link.sendall(b"MONITOR\r\n")
        self._link.recv(5)
        self._thread = threading.Thread(target=self._listen, daemon=True)
        self._thread.start()

    def _listen(self) -> None:
        with self._link.makefile("rb") as lines:
            for line in lines:
                if found := re.match(rb'\+?(\d+)\.(\d{6}) .*"[lr]push" ".*" "([\d.]+)"', line, re.IGNORECASE):
                    is_exact = len(found[3]) == 16 and found[3].isdigit()
                    self.times.append(int(found[3] if is_exact else found[1] + found[2]))

    def wait_for(self, number: int) -> bool:
        """Wait until Redis has reported all hits, and return whether their number matches."""
        end = time.monotonic() + 10
        while len(self.times) < number and time.monotonic() < end:
            time.sleep(0.05)
        return len(self.times) == number

    def fullest(self, seconds: float) -> int:
        """Return the maximum number of hits in any window of this length."""
        times, first, most = sorted(self.times), 0, 0
        for last, hit in enumerate(times):
            while times[first] < hit - seconds * 1_000_000:
                first += 1
            most = max(most, last - first + 1)
        return most


async def attack(ports: Sequence[int], tool: str, calls: int) -> tuple[int, list[int]]:
    """Call a tool through all replicas concurrently. Return how many calls were admitted, and the others' waits."""
    opened = [await Connection.open(port, STATELESS) for port in ports for _ in range(CONNECTIONS)]
    left = iter(range(calls))
    waits: list[int] = []

    async def call(connection: Connection) -> int:
        count = 0
        for _ in left:
            try:
                await connection.call(tool, {})
            except RuntimeError as error:
                waits.extend(int(found) for found in re.findall(r"Try again in (\d+) second", str(error)))
            else:
                count += 1
        return count

    admitted = await asyncio.gather(*(call(connection) for connection in opened))
    for connection in opened:
        connection.close()
    return sum(admitted), waits


@contextmanager
def replica(folder: Path, redis: int, skew: int) -> Iterator[int]:
    """Run a server with a shifted clock; yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    command = ["faketime", "-f", f"{skew:+d}s", sys.executable, "-m", "clocks_mcp", "--handlers", "clocks:Clocks"]
    options = ["--state", f"redis://127.0.0.1:{redis}/0", "--http", f"127.0.0.1:{port}", "--log-level", "error"]
    environment = {**os.environ, "FAKETIME_DONT_FAKE_MONOTONIC": "1", "DONT_FAKE_MONOTONIC": "1"}
    # faketime forks the server and forwards no signals, so the whole group is killed.
    with subprocess.Popen([*command, *options], cwd=folder, env=environment, start_new_session=True) as process:
        try:
            asyncio.run(wait_for_port(port))
            yield port
        finally:
            os.killpg(process.pid, signal.SIGTERM)
            for path in Path("/dev/shm").glob(
                f"*faketime_s*_{process.pid}"
            ):  # a file from an earlier process with the same ID
                path.unlink(missing_ok=True)


@contextmanager
def running_redis(folder: Path) -> Iterator[int]:
    """Run Redis without persistence; yield its port."""
    with socket.create_server(("127.0.0.1", 0)) as free:
        port: int = free.getsockname()[1]
    options = ["--port", str(port), "--bind", "127.0.0.1", "--save", "", "--dir", str(folder)]
    with subprocess.Popen(["redis-server", *options], stdout=subprocess.DEVNULL) as process:
        try:
            asyncio.run(wait_for_port(port))
            yield port
        finally:
            process.terminate()


def main() -> int:
    """Run the attacks; return 1 if a rate limit was exceeded."""
    if missing := [name for name in ("redis-server", "faketime") if shutil.which(name) is None]:
        print(f"clocks: not run: {', '.join(missing)} is not installed")
        return 1 if os.environ.get("CI") == "true" else 0
    is_quick = "--quick" in sys.argv
    failed = False

    def report(what: str, value: object, limit: str, *, holds: bool) -> None:
        nonlocal failed
        failed |= not holds
        print(f"clocks: {what}: {value} ({limit}){'' if holds else '  FAILED'}", flush=True)

    with tempfile.TemporaryDirectory() as name, ExitStack() as running:
        folder = Path(name)
        (folder / "clocks.json").write_text(json.dumps(MANIFEST))
        (folder / "clocks.py").write_text(HANDLERS)
        generate = [sys.executable, "-m", "stubwright", "generate", "-q", "clocks.json", "-o", "."]
        subprocess.run(generate, cwd=folder, check=True)
        redis = running.enter_context(running_redis(folder))
        skews = SKEWS[::3] if is_quick else SKEWS
        ports = [running.enter_context(replica(folder, redis, skew)) for skew in skews]

        admitted, waits = asyncio.run(attack(ports, "minutely", 200))
        report(f"admitted of 200 at 100 a minute, clocks {skews}", admitted, "100", holds=admitted == 100)
        holds = len(waits) == 200 - admitted and all(1 <= wait <= 60 for wait in waits)
        span = f"{min(waits, default=0)} to {max(waits, default=0)}"
        report("seconds to wait, in the rejections", span, "1 to 60", holds=holds)
        hits = Hits(redis)
        admitted, waits = asyncio.run(attack(ports, "secondly", 500 if is_quick else 3000))
        holds = hits.wait_for(admitted)
        fullest = hits.fullest(1)
        report("most in a second at 20 a second", fullest, "20", holds=0 < fullest <= 20)
        report("admitted in total, compared with hits in Redis", (admitted, len(hits.times)), "equal", holds=holds)
        report("seconds to wait", f"{min(waits, default=0)} to {max(waits, default=0)}", "1", holds={*waits} <= {1})
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
