"""Soaks servers under load. Their memory, descriptors and threads must not grow.

    python bench/torture/soak.py [--seconds N] [--quick]

Three processes serve the generated `everything_mcp`: one over HTTP, and two over stdio, each for one revision. In
rounds, clients of 2025-11-25 and 2026-07-28 call tools, make calls fail, cancel calls, run tasks, subscribe to changes,
and abandon sessions, streams and calls. After each round the servers are idle for a moment and
are measured. Compares the medians of the second and the last quarter of the rounds; earlier rounds are the warm-up.
Returns 1 if a process uses more than 5 % more memory, or a descriptor or a thread more.

Python's allocator and garbage collector vary by 5 % or 4 MiB (the larger applies) from round to round. Ten minutes have
some thousands of requests, so a leak of 1 KiB per request is detected.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import statistics
import sys
import time
from collections.abc import AsyncIterator, Awaitable
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, Final, NamedTuple

sys.path.insert(0, str(Path(__file__).parents[1]))
sys.path.insert(0, str(Path(__file__).parents[2] / "tests" / "support"))

import httpx2

from over_http import wait_for_port
from sizing import find_port, megabytes
from task_wire import EXTENSION, HANDSHAKE, STATELESS, Message, Wire, over_http

ROOT: Final = Path(__file__).parents[2]
GROWTH: Final = 0.05
SLACK: Final = 4.0
"""MiB that do not count as growth."""

CLIENTS: Final = 6
"""Clients of each revision over HTTP, in each round."""

IDLE: Final = 5.0
"""Seconds after which an abandoned session ends."""

REST: Final = 5.5
"""Seconds without clients before a measurement. A sample waits less, so some sessions still exist."""

ROUNDS: Final = 4
"""Minimum number of rounds."""

PATIENCE: Final = 15.0
NOTING: Final = """
import os
import sys
from pathlib import Path

# The command may start this process as a child, so record the id of the server itself.
Path(sys.argv.pop(1)).write_text(str(os.getpid()))
"""
STDIO: Final = f"""{NOTING}
from everything_mcp.__main__ import run

run()
"""
SERVING: Final = f"""{NOTING}
import uvicorn
from everything import Everything
from everything_mcp import asgi_app

app = asgi_app(Everything(), session_idle_timeout={IDLE})
uvicorn.run(app, host="127.0.0.1", port=int(sys.argv[1]), log_level="critical")
"""
ENVIRONMENT: Final = {
    **os.environ,
    "PYTHONPATH": os.pathsep.join([str(ROOT / "generated"), str(ROOT / "examples")]),
}
LISTEN: Final = {"notifications": {"toolsListChanged": True, "resourceSubscriptions": ["test://watched-resource"]}}
Call = tuple[str, dict[str, Any]]
CALLS: Final[tuple[Call, ...]] = (
    ("tools/list", {}),
    ("tools/call", {"name": "greet", "arguments": {"name": "Ada"}}),
    ("tools/call", {"name": "test_tool_with_progress", "arguments": {}}),
    ("tools/call", {"name": "test_tool_with_logging", "arguments": {}}),
    ("tools/call", {"name": "test_multiple_content_types", "arguments": {}}),
    ("resources/read", {"uri": "test://static-text"}),
    ("tools/call", {"name": "test_trigger_tool_change", "arguments": {}}),
)
FAILING: Final[tuple[Call, ...]] = (
    ("tools/call", {"name": "test_error_handling", "arguments": {}}),
    ("tools/call", {"name": "greet", "arguments": {"name": 7}}),
    ("tools/call", {"name": "nothing", "arguments": {}}),
    ("no/such", {}),
    ("resources/read", {"uri": "test://nowhere"}),
)
POOLED: Final = 2 * CLIENTS
"""Threads that a pool may start after the warm-up: one for each concurrent client."""
LONG: Final = {"name": "slow_compute", "arguments": {"seconds": 20}}
SHORT: Final = {"name": "slow_compute", "arguments": {"seconds": 0.02}}


class Resources(NamedTuple):
    """The resources of a process."""

    memory: float
    descriptors: int
    threads: int


@dataclass(slots=True)
class Server:
    """A process, and its resources after each round."""

    name: str
    process: Path
    """The file in which the process records its id."""
    rounds: list[Resources]

    def measure(self) -> None:
        """Record the current resources."""
        process = int(self.process.read_text())
        folder = Path(f"/proc/{process}")
        descriptors, threads = len([*(folder / "fd").iterdir()]), len([*(folder / "task").iterdir()])
        self.rounds.append(Resources(megabytes(process), descriptors, threads))

    def is_flat(self) -> bool:
        """Print the resources; return whether they did not grow."""
        quarter = max(1, len(self.rounds) // 4)
        early = Resources(
            *(statistics.median_low(each) for each in zip(*self.rounds[quarter : 2 * quarter], strict=True))
        )
        late = Resources(*(statistics.median_low(each) for each in zip(*self.rounds[-quarter:], strict=True)))
        most = early.memory + max(GROWTH * early.memory, SLACK)
        print(f"soak: {self.name}: memory: {early.memory:.1f} to {late.memory:.1f} MiB (at most {most:.1f})")
        print(f"soak: {self.name}: descriptors: {early.descriptors} to {late.descriptors} (no more)")
        threads = early.threads + POOLED
        print(f"soak: {self.name}: threads: {early.threads} to {late.threads} (at most {threads})", flush=True)
        return late.memory <= most and late.descriptors <= early.descriptors and late.threads <= threads


class Pipe:
    """The connection to a server over stdio."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process

    async def send(self, message: Message) -> None:
        """Send a message."""
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")
        await self._process.stdin.drain()


@asynccontextmanager
async def stdio(folder: Path, revision: str) -> AsyncIterator[tuple[Server, Wire]]:
    """Run a server over stdio; yield its client."""
    noted = folder / revision
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-c", STDIO, noted, "--handlers", "everything:Everything", "--log-level", "error"),
        env=ENVIRONMENT,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        limit=1 << 22,
    )
    wire = Wire(revision, {}, None)
    wire.transport = Pipe(process)
    output = process.stdout
    assert output is not None

    async def hear() -> None:
        while line := await output.readline():
            with suppress(AssertionError, asyncio.InvalidStateError):  # the response of a cancelled call
                await wire.heard(json.loads(line))

    hearing = asyncio.ensure_future(hear())
    try:
        if revision < STATELESS:
            await wire.open()
        yield Server(f"stdio, {revision}", noted, []), wire
    finally:
        process.kill()
        await process.wait()
        await hearing


@asynccontextmanager
async def http(folder: Path) -> AsyncIterator[tuple[Server, str]]:
    """Run a server over HTTP; yield its URL."""
    port, noted = find_port(), folder / "http"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", SERVING, noted, str(port), env=ENVIRONMENT)
    try:
        await wait_for_port(port)
        yield Server("HTTP, both revisions", noted, []), f"http://127.0.0.1:{port}/mcp"
    finally:
        process.kill()
        await process.wait()


async def use_servers(wire: Wire) -> int:
    """Run each client's steps in a round. Return the number of requests."""
    for method, params in CALLS:
        said = await wire(method, **params, seconds=PATIENCE)
        if "error" in said:
            raise RuntimeError(f"{method} failed: {said}")
    for method, params in FAILING:
        said = await wire(method, **params, seconds=PATIENCE)
        if "error" not in said and not said.get("isError"):
            raise RuntimeError(f"{method} did not fail: {said}")
    if wire.revision < STATELESS:
        await run_task(wire)
    wire.notes.clear()
    return len(CALLS) + len(FAILING) + 2


async def run_task(wire: Wire) -> None:
    """Run two tasks: the first until its result, the second until it is cancelled."""
    for params, method in ((SHORT, "tasks/result"), (LONG, "tasks/cancel")):
        made = await wire("tools/call", **params, task={"ttl": 5000}, seconds=PATIENCE)
        said = await wire(method, taskId=made["task"]["taskId"], seconds=PATIENCE)
        if "error" in said:
            raise RuntimeError(f"{method} failed: {said}")


async def cancel_call(wire: Wire, method: str, params: dict[str, Any]) -> None:
    """Send a request, and cancel it while it runs."""
    before = {*wire._waiting}
    request = wire.start(method, **params, seconds=0.3)
    await asyncio.sleep(0.1)
    for number in {*wire._waiting} - before:
        await wire.transport.send({"method": "notifications/cancelled", "params": {"requestId": number}})
    await asyncio.wait([request])
    request.exception()


async def over_stdio(wire: Wire) -> int:
    """Run a round for a stdio server's client."""
    count = await use_servers(wire)
    await cancel_call(wire, "tools/call", LONG)
    if wire.revision >= STATELESS:
        await cancel_call(wire, "subscriptions/listen", LISTEN)
    wire._waiting.clear()
    return count + 2


async def visit(url: str, revision: str, *, stateless_task: bool) -> int:
    """Run a round of a client over HTTP that disconnects while its requests run."""
    tasks = {"extensions": {EXTENSION: {}}} if stateless_task else {}
    async with over_http(url, revision, tasks) as wire:
        count = 0 if stateless_task else await use_servers(wire)
        if stateless_task:
            made = await wire("tools/call", **SHORT, seconds=PATIENCE)
            await wire.until(made["taskId"], "completed", seconds=PATIENCE)
        left = [wire.start("tools/call", **LONG)]
        if revision >= STATELESS:
            left.append(wire.start("subscriptions/listen", **LISTEN))
        else:
            left.append(asyncio.ensure_future(open_stream(wire)))
        await asyncio.sleep(0.1)
        for request in left:
            request.cancel()
        await asyncio.wait(left)
    return count + 3


async def open_stream(wire: Wire) -> Message:
    """Open a session's stream."""
    transport: Any = wire.transport
    async with httpx2.AsyncClient(timeout=None) as client:
        await client.get(transport._url, headers=transport._headers)
    return {}


async def soak(seconds: float, rest: float) -> bool:
    """Return whether the servers use the same resources at the end as after the warm-up."""
    rounds, requests = 0, 0
    async with AsyncExitStack() as stack:
        folder = Path(stack.enter_context(TemporaryDirectory()))
        local = [await stack.enter_async_context(stdio(folder, revision)) for revision in (HANDSHAKE, STATELESS)]
        server, url = await stack.enter_async_context(http(folder))
        servers = [server, *(one for one, _ in local)]
        end = time.monotonic() + seconds
        while time.monotonic() < end or rounds < ROUNDS:
            doing: list[Awaitable[int]] = [over_stdio(wire) for _, wire in local]
            doing += [visit(url, one, stateless_task=False) for one in (HANDSHAKE, STATELESS) for _ in range(CLIENTS)]
            if rounds % 10 == 0:  # the server stores its task for the manifest's duration
                doing.append(visit(url, STATELESS, stateless_task=True))
            requests += sum(await asyncio.gather(*doing))
            rounds += 1
            await asyncio.sleep(rest)
            for one in servers:
                one.measure()
    print(f"soak: {requests} requests in {rounds} rounds and {seconds:.0f} s")
    flat = [one.is_flat() for one in servers]
    return all(flat)


def main() -> int:
    """Put load on the servers, and return the exit status."""
    parser = argparse.ArgumentParser(description="Put servers under load, and measure their resources.")
    parser.add_argument("--seconds", type=float, default=600.0, help="duration (default: 600)")
    parser.add_argument("--quick", action="store_true", help=f"{ROUNDS} rounds, with short idle times")
    options = parser.parse_args()
    return 0 if asyncio.run(soak(0.0, 0.6) if options.quick else soak(options.seconds, REST)) else 1


if __name__ == "__main__":
    sys.exit(main())
