"""Attacks a slow `def` tool with clients that disconnect immediately; other calls must succeed.

    python bench/torture/threads.py [--quick]

Prints the server's threads before and after, the outcomes of calls to other tools and to the same tool, and whether the
threads exit. Returns 1 if a requirement fails.
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

from _target import Report, Target, target

from over_http import HANDSHAKE, STATELESS, Connection

TOGETHER: Final = 60
"""Number of concurrent calls before their clients disconnect."""

OTHERS: Final = 30
"""Number of calls of each other tool."""

THREADS: Final = 64
"""The server's limit of handler threads."""

OWN: Final = 16
"""Maximum number of the server's other threads."""


async def _drop(port: int, revision: str, seconds: float) -> None:
    """Call, and disconnect a moment later."""
    try:
        connection = await Connection.open(port, revision)
    except (OSError, RuntimeError, TimeoutError):
        return
    with suppress(OSError, RuntimeError, TimeoutError, EOFError):
        async with asyncio.timeout(0.7):
            await connection.call("block", {"seconds": seconds})
    connection.close()


async def _call(port: int, revision: str, name: str) -> float | None:
    """Return a call's duration in seconds, or `None` if it fails or takes more than 8."""
    began = time.perf_counter()
    with suppress(OSError, RuntimeError, TimeoutError, EOFError):
        async with asyncio.timeout(8):
            connection = await Connection.open(port, revision)
            try:
                await connection.call(name, {"seconds": 0})
                return time.perf_counter() - began
            finally:
                connection.close()
    return None


async def _attack(report: Report, it: Target, calls: int, seconds: float) -> None:
    before = it.threads()
    for start in range(0, calls, TOGETHER):
        revision = HANDSHAKE if start >= calls * 2 // 3 else STATELESS  # the former does not end with its connection
        await asyncio.gather(*(_drop(it.port, revision, seconds) for _ in range(min(TOGETHER, calls - start))))
    after = it.threads()
    limit = THREADS // 2 + OWN
    report.say("threads before", str(before))
    report.say(f"threads after {calls} dropped calls", str(after), f"at most {limit}", holds=after <= limit)
    for name in ("echo", "wait"):
        for revision in (STATELESS, HANDSHAKE):
            fine: list[float] = []
            for _ in range(OTHERS):
                if (taken := await _call(it.port, revision, name)) is None:
                    break
                fine.append(taken)
            what = f"calls of {name!r}, {revision}, meanwhile"
            middle = f", p50 {statistics.median(fine) * 1000:.0f} ms" if fine else ""
            report.say(what, f"{len(fine)} of {OTHERS} answered{middle}", "all", holds=len(fine) == OTHERS)
    said, is_told = await _call_same(it.port)
    report.say("the same tool", said, "rejected with a reason", holds=is_told)


async def _call_same(port: int) -> tuple[str, bool]:
    """Call the same tool. Return the response, and whether it is a rejection with a reason."""
    began = time.perf_counter()
    connection = await Connection.open(port, STATELESS)
    try:
        async with asyncio.timeout(8):
            await connection.call("block", {"seconds": 0})
            return f"answered after {time.perf_counter() - began:.1f} s", False
    except RuntimeError as error:
        is_told = "threads of block are busy" in str(error)
        return f"{'rejected' if is_told else error} after {time.perf_counter() - began:.1f} s", is_told
    except TimeoutError:
        return "no answer in 8 s", False
    finally:
        connection.close()


async def _wait_for_threads(report: Report, port: int, seconds: float) -> None:
    """Call the tool repeatedly until the abandoned calls have finished."""
    for _ in range(int(seconds)):
        if await _call(port, STATELESS, "block") is not None:
            report.say("the same tool after their end", "answered", "answered")
            return
        await asyncio.sleep(1)
    report.say("the same tool after their end", "not answered", "answered", holds=False)


def main() -> int:
    """Run the attack, and report it."""
    parser = argparse.ArgumentParser(description="Abandon calls of a slow tool.")
    parser.add_argument("--quick", action="store_true", help="run a sample of some seconds")
    quick: bool = parser.parse_args().quick
    calls, seconds = (120, 20.0) if quick else (600, 30.0)
    report = Report("threads")
    with tempfile.TemporaryDirectory() as made, target(Path(made), "--log-level", "warning") as it:
        asyncio.run(_attack(report, it, calls, seconds))
        asyncio.run(_wait_for_threads(report, it.port, seconds + 10))
    return report.status()


if __name__ == "__main__":
    sys.exit(main())
