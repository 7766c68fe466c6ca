"""Attacks resumption with forty clients that request missed messages; another client's calls of `echo` must stay fast.

    python bench/torture/resumption.py [--quick]

A call has sent 4 MiB of messages and continues. Forty GETs of 150 bytes with `Last-Event-ID` request the messages after
an earlier event: in memory, from the same process, by clients that do not read the response; and in Redis, from another
process, for future messages, and with modified ids. Meanwhile one client calls `echo`. Prints the median time of its
calls and the server's memory, before and during the attack. Returns 1 if they grow too much.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

from over_http import STATELESS, Connection, wait_for_port
from redis_server import run_redis
from sizing import find_port, megabytes

ATTACKERS: Final = 40
MESSAGES: Final = 480
SIZE: Final = 8000
"""The number of messages in a session, and the characters of each: together the maximum that is retained."""

SLOWER: Final = (30.0, 100.0)
"""Maximum increase of the milliseconds of an `echo` call: the median, and the 95th percentile."""

JUDGED: Final = 5.0
"""Seconds from which times are checked. A sample, next to other tests, only prints them."""

MORE: Final = 64.0
"""Maximum growth of the server in MiB."""

COUNTS: Final = {"count": {"type": "integer"}, "size": {"type": "integer"}}
MANIFEST: Final[dict[str, Any]] = {
    "stubwright": 1,
    "server": {"name": "target", "version": "1"},
    "tools": [{"name": name, "inputSchema": {"type": "object", "properties": COUNTS}} for name in ("echo", "talk")],
}
HANDLERS: Final = """
import asyncio
import os
from pathlib import Path

# The command may start this process as a child, so record the id of the server itself.
Path("process").write_text(str(os.getpid()))

class Target:
    async def echo(self, args, ctx):
        return "echo"

    async def talk(self, args, ctx):
        for _ in range(args.count):
            await ctx.log("info", "x" * args.size)
        await asyncio.sleep(600)
"""
TALK: Final = {"name": "talk", "arguments": {"count": MESSAGES, "size": SIZE}}
ACCEPT: Final = {"accept": "application/json, text/event-stream", "mcp-protocol-version": "2025-11-25"}


@dataclass(slots=True)
class Server:
    """A running server process."""

    port: int
    process: int

    async def request(self, method: str, headers: dict[str, str], body: bytes = b"") -> asyncio.StreamReader:
        """Send a request on a new connection, and return its reader and writer."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 20)
        OPEN.append(writer)
        host, kept = f"127.0.0.1:{self.port}", "keep-alive" if body else "close"
        lines = {"host": host, "connection": kept, **ACCEPT, **headers, "content-length": str(len(body))}
        head = "".join(f"{name}: {value}\r\n" for name, value in lines.items())
        writer.write(f"{method} /mcp HTTP/1.1\r\n{head}\r\n".encode() + body)
        return reader

    async def post(
        self, method: str, params: dict[str, Any], session: str | None, number: int = 0, events: int = 0
    ) -> tuple[dict[str, str], list[str]]:
        """Send a message; return the response headers, and the ids of its first events."""
        said = {"jsonrpc": "2.0", "method": method, "params": params, **({"id": number} if number else {})}
        headers = {"content-type": "application/json", **({} if session is None else {"mcp-session-id": session})}
        reader = await self.request("POST", headers, json.dumps(said).encode())
        found: dict[str, str] = {}
        while line := (await reader.readline()).decode().strip():
            name, _, value = line.partition(":")
            found[name.lower()] = value.strip()
        ids: list[str] = []
        while len(ids) < events:
            line = (await reader.readline()).decode().strip()
            if line.startswith("id:"):
                ids.append(line[3:].strip())
        return found, ids


OPEN: Final[list[asyncio.StreamWriter]] = []


@asynccontextmanager
async def serve(folder: Path, state: str) -> AsyncIterator[Server]:
    """Run a server during a block."""
    port = find_port()
    command = [sys.executable, "-m", "target_mcp", "--handlers", "target:Target", "--http", f"127.0.0.1:{port}"]
    process = await asyncio.create_subprocess_exec(*command, "--state", state, "--log-level", "error", cwd=folder)
    try:
        await wait_for_port(port)
        yield Server(port, int((folder / "process").read_text()))
    finally:
        process.kill()
        await process.wait()


async def fill_session(server: Server) -> tuple[str, str, str]:
    """Open a session whose call has sent many messages; return its id, and the ids of the first and last event."""
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "torture", "version": "1"}}
    headers, _ = await server.post("initialize", hello, None, 1)
    session = headers["mcp-session-id"]
    await server.post("notifications/initialized", {}, session)
    _, ids = await server.post("tools/call", TALK, session, 2, MESSAGES + 1)
    for writer in OPEN:
        writer.close()
    OPEN.clear()
    return session, ids[0], ids[-1]


async def time_calls(connection: Connection, seconds: float) -> tuple[float, float]:
    """Return the milliseconds of `echo` calls: the median and the 95th percentile."""
    times: list[float] = []
    end = time.perf_counter() + seconds
    while (began := time.perf_counter()) < end or not times:
        await connection.call("echo", {})
        times.append(time.perf_counter() - began)
    times.append(times[-1])
    return statistics.median(times) * 1000, statistics.quantiles(times, n=20)[-1] * 1000


async def measure(
    name: str, server: Server, attack: Callable[[], Awaitable[None]], seconds: float, start: float = 0.5
) -> bool:
    """Return whether a server withstands these attackers, measured from some seconds after their start."""
    connection = await Connection.open(server.port, STATELESS)
    await time_calls(connection, min(seconds, 0.5))
    calm, small = await time_calls(connection, seconds / 4), megabytes(server.process)
    attackers = [asyncio.ensure_future(attack()) for _ in range(ATTACKERS)]
    await asyncio.sleep(start)
    busy, largest = await time_calls(connection, seconds), small
    for _ in range(5):
        largest = max(largest, megabytes(server.process))
        await asyncio.sleep(0.05)
    for attacker in attackers:
        attacker.cancel()
    await asyncio.wait(attackers)
    for writer in OPEN:
        writer.close()
    OPEN.clear()
    connection.close()
    print(f"resumption: {name}: echo, median: {calm[0]:.1f} to {busy[0]:.1f} ms (at most {SLOWER[0]:.0f} ms more)")
    print(f"resumption: {name}: echo, 19 of 20: {calm[1]:.1f} to {busy[1]:.1f} ms (at most {SLOWER[1]:.0f} ms more)")
    print(f"resumption: {name}: memory: {small:.0f} to {largest:.0f} MiB (at most {MORE:.0f} MiB more)", flush=True)
    is_fast = all(late - early <= most for late, early, most in zip(busy, calm, SLOWER, strict=True))
    return (is_fast or seconds < JUDGED) and largest - small <= MORE


async def attack_memory(folder: Path, seconds: float) -> bool:
    """Return whether the process that has the session withstands the attack."""
    async with serve(folder, "memory://") as server:
        session, first, _ = await fill_session(server)

        async def read_nothing() -> None:
            with suppress(OSError):
                await server.request("GET", {"mcp-session-id": session, "last-event-id": first})
                await asyncio.sleep(600)

        # Filling the socket buffers of clients that do not read loads the server like forty other clients.
        return await measure("missed messages, in memory", server, read_nothing, seconds, start=4)


async def attack_redis(folder: Path, redis: str, *, changed: bool, seconds: float) -> bool:
    """Return whether a process that shares the session's state withstands the attack."""
    async with serve(folder, redis) as first, serve(folder, redis) as other:
        session, _, last = await fill_session(first)
        name = last.replace("/", "0/") if changed else last

        async def come_back() -> None:
            with suppress(OSError):
                while True:
                    reader = await other.request("GET", {"mcp-session-id": session, "last-event-id": name})
                    while await reader.read(1 << 16):  # until the server closes the connection
                        pass
                    await asyncio.sleep(0.25)

        what = "modified ids, in Redis" if changed else "future messages, in Redis"
        return await measure(what, other, come_back, seconds)


async def attack_all(folder: Path, redis: str | None, seconds: float) -> bool:
    """Return whether servers withstand all attacks."""
    held = await attack_memory(folder, seconds)
    if redis is None:
        print("resumption: not measured with Redis, because redis-server is not installed")
        return held
    for changed in (False, True):
        held &= await attack_redis(folder, redis, changed=changed, seconds=seconds)
    return held


def main() -> int:
    """Run the attacks, and return the exit status."""
    parser = argparse.ArgumentParser(description="Attack resumption with many clients.")
    parser.add_argument("--quick", action="store_true", help="for a moment")
    seconds = 0.3 if parser.parse_args().quick else 8.0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "target.json").write_text(json.dumps(MANIFEST))
        (folder / "target.py").write_text(HANDLERS)
        command = [sys.executable, "-m", "stubwright", "generate", "-q", "target.json", "-o", "."]
        subprocess.run(command, cwd=folder, check=True)
        if shutil.which("redis-server") is None:
            return 0 if asyncio.run(attack_all(folder, None, seconds)) else 1
        (folder / "redis").mkdir()
        with run_redis(folder / "redis") as server:
            return 0 if asyncio.run(attack_all(folder, server.url, seconds)) else 1


if __name__ == "__main__":
    sys.exit(main())
