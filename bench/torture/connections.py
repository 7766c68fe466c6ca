"""Attacks a server limited to 256 descriptors with incomplete requests that stay open; other calls must succeed.

    python bench/torture/connections.py [--quick]

Opens 800 connections. Half of them send an incomplete header and half an incomplete body, a byte from time to time, and
closed connections are reopened: from one address, from many, and from the address of the good clients. Prints how many
calls of good clients succeed and how long they take, the growth of the log, and the server's descriptors. Returns 1 if
a limit is exceeded.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

from _target import Report, Target, allow_descriptors, target

from over_http import HANDSHAKE, STATELESS, Connection

HALVES: Final = 800
DESCRIPTORS: Final = 256
REST: Final = 2.0
"""Seconds before a closed connection is reopened."""

CALLERS: Final = 4
DEADLINE: Final = 5.0
"""Seconds after which a call counts as unanswered."""

LOG: Final = 200_000
"""Maximum growth of the log in bytes during one attack."""

SLOWEST: Final = 1.0
"""Maximum median seconds of a call in a full run. Other tests slow down a sample."""

HEAD: Final = b"POST /mcp HTTP/1.1\r\nHost: 127.0.0.1:%d\r\n"
BODY: Final = HEAD + b"Content-Type: application/json\r\nAccept: application/json\r\nContent-Length: 1000\r\n\r\n{"


async def _send_incomplete(port: int, number: int, address: str) -> None:
    """Send an incomplete request, and another when the server closes the connection."""
    said = (BODY if number % 2 else HEAD) % port
    while True:
        with suppress(OSError, TimeoutError):
            async with asyncio.timeout(5):
                reader, writer = await asyncio.open_connection("127.0.0.1", port, local_addr=(address, 0))
            print(number, flush=True)
            try:
                writer.write(said)
                while not reader.at_eof():
                    with suppress(TimeoutError):
                        async with asyncio.timeout(2):
                            await reader.read(1000)
                    writer.write(b"x")
            finally:
                writer.close()
        await asyncio.sleep(REST)


async def _send_all(port: int, addresses: int) -> None:
    """Send many incomplete requests; record each connection that is opened."""
    names = [f"127.0.{1 + number // 200}.{1 + number % 200}" for number in range(addresses)]
    names = ["127.0.0.1"] if addresses == 1 else names
    await asyncio.gather(*(_send_incomplete(port, each, names[each % len(names)]) for each in range(HALVES)))


async def _call(port: int, revision: str, until: float, taken: list[float | None]) -> None:
    """Make calls one after the other, each on a new connection."""
    while time.monotonic() < until:
        began = time.perf_counter()
        try:
            async with asyncio.timeout(DEADLINE):
                connection = await Connection.open(port, revision)
                try:
                    await connection.call("echo", {})
                finally:
                    connection.close()
        except (OSError, RuntimeError, TimeoutError, EOFError):
            taken.append(None)
        else:
            taken.append(time.perf_counter() - began)
        await asyncio.sleep(0.05)


async def _attack(report: Report, it: Target, what: str, addresses: int, seconds: float, slowest: float) -> None:
    size, taken = it.log.stat().st_size, list[float | None]()
    command = [sys.executable, __file__, "--attack", str(it.port), str(addresses)]
    nowhere, pipe = asyncio.subprocess.DEVNULL, asyncio.subprocess.PIPE
    attackers = await asyncio.create_subprocess_exec(*command, stdout=pipe, stderr=nowhere)
    try:
        await asyncio.sleep(3)
        until = time.monotonic() + seconds
        revisions = (STATELESS, HANDSHAKE)
        await asyncio.gather(*(_call(it.port, revisions[each % 2], until, taken) for each in range(CALLERS)))
        descriptors, grown = it.descriptors(), it.log.stat().st_size - size
    finally:
        attackers.kill()
        opened = (await attackers.communicate())[0].split()
    fine = [one for one in taken if one is not None]
    middle = statistics.median(fine) if fine else float("inf")
    report.say(f"{what}: connections opened", str(len(opened)))
    share = f"{len(fine)} of {len(taken)}"
    report.say(f"{what}: answered calls of good clients", share, "98 %", holds=len(fine) >= 0.98 * len(taken))
    report.say(
        f"{what}: their p50", f"{middle * 1000:.0f} ms", f"at most {slowest * 1000:.0f} ms", holds=middle <= slowest
    )
    report.say(f"{what}: the log grew by", f"{grown:,} bytes", f"at most {LOG:,}", holds=grown <= LOG)
    report.say(
        f"{what}: descriptors", str(descriptors), f"at most {DESCRIPTORS - 32}", holds=descriptors <= DESCRIPTORS - 32
    )


async def _wait_for_deadlines(report: Report, it: Target) -> None:
    """Wait for the deadlines, and return how many incomplete requests remain."""
    before = it.descriptors()
    links = [await asyncio.open_connection("127.0.0.1", it.port) for _ in range(40)]
    for number, (_, writer) in enumerate(links):
        writer.write((BODY if number % 2 else HEAD) % it.port)
    began = time.monotonic()
    ended = [asyncio.create_task(reader.read()) for reader, _ in links]
    _, left = await asyncio.wait(ended, timeout=20)
    said = (
        f"{len(left)} of {len(links)} after {time.monotonic() - began:.0f} s, descriptors {before} → {it.descriptors()}"
    )
    report.say("incomplete requests that remain", said, "none", holds=not left)
    for _, writer in links:
        writer.close()


def main() -> int:
    """Run the attacks, and report them."""
    parser = argparse.ArgumentParser(description="Open incomplete requests, and keep them open.")
    parser.add_argument("--quick", action="store_true", help="run a sample of some seconds")
    parser.add_argument("--attack", nargs=2, type=int, metavar=("PORT", "ADDRESSES"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    allow_descriptors(4096)
    if options.attack:
        asyncio.run(_send_all(*options.attack))
    quick: bool = options.quick
    report = Report("connections")
    attacks = {"the same address": 1, "many addresses": 400}
    with tempfile.TemporaryDirectory() as made, target(Path(made), descriptors=DESCRIPTORS) as it:
        for what, addresses in attacks.items():
            seconds, slowest = (2, DEADLINE) if quick else (12, SLOWEST)
            asyncio.run(_attack(report, it, what, addresses, seconds, slowest))
        if not quick:
            asyncio.run(_wait_for_deadlines(report, it))
    return report.status()


if __name__ == "__main__":
    sys.exit(main())
