"""Calls of a plain `def` tool that takes long, whose callers leave at once: do other calls go on?

    python bench/torture/threads.py [--quick]

Prints how many threads the server has before and after, how the calls of other tools and of the same tool end, and
whether the threads are given back. Gives 1 where something does not hold.
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
"""Calls that are under way at once before they are dropped."""

OTHERS: Final = 30
"""Calls of each other tool."""

THREADS: Final = 64
"""What the server allows itself."""

OWN: Final = 16
"""Threads that the server has beside those of handlers, at most."""


async def _drop(port: int, revision: str, seconds: float) -> None:
    """Call, and leave a moment later."""
    try:
        connection = await Connection.opened(port, revision)
    except (OSError, RuntimeError, TimeoutError):
        return
    with suppress(OSError, RuntimeError, TimeoutError, EOFError):
        async with asyncio.timeout(0.7):
            await connection.call("block", {"seconds": seconds})
    connection.close()


async def _call(port: int, revision: str, name: str) -> float | None:
    """How many seconds a call takes; None where it fails or takes more than 8."""
    began = time.perf_counter()
    with suppress(OSError, RuntimeError, TimeoutError, EOFError):
        async with asyncio.timeout(8):
            connection = await Connection.opened(port, revision)
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
    said, is_told = await _same(it.port)
    report.say("the same tool", said, "refused in words", holds=is_told)


async def _same(port: int) -> tuple[str, bool]:
    """What a call of it says, and whether that is a refusal that says why."""
    began = time.perf_counter()
    connection = await Connection.opened(port, STATELESS)
    try:
        async with asyncio.timeout(8):
            await connection.call("block", {"seconds": 0})
            return f"answered after {time.perf_counter() - began:.1f} s", False
    except RuntimeError as error:
        is_told = "threads of block are busy" in str(error)
        return f"{'refused' if is_told else error} after {time.perf_counter() - began:.1f} s", is_told
    except TimeoutError:
        return "no answer in 8 s", False
    finally:
        connection.close()


async def _freed(report: Report, port: int, seconds: float) -> None:
    """Call the tool again until what was given up has ended."""
    for _ in range(int(seconds)):
        if await _call(port, STATELESS, "block") is not None:
            report.say("the same tool when those have ended", "answered", "answered")
            return
        await asyncio.sleep(1)
    report.say("the same tool when those have ended", "not answered", "answered", holds=False)


def main() -> int:
    """Attack, and report."""
    parser = argparse.ArgumentParser(description="Drop calls of a tool that takes long.")
    parser.add_argument("--quick", action="store_true", help="take a sample of some seconds")
    quick: bool = parser.parse_args().quick
    calls, seconds = (120, 20.0) if quick else (600, 30.0)
    report = Report("threads")
    with tempfile.TemporaryDirectory() as made, target(Path(made), "--log-level", "warning") as it:
        asyncio.run(_attack(report, it, calls, seconds))
        asyncio.run(_freed(report, it.port, seconds + 10))
    return report.status()


if __name__ == "__main__":
    sys.exit(main())
