"""Times commands and running servers in alternating turns, so that a busy machine slows all of them equally."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path


def medians(
    commands: Mapping[str, Sequence[str]], *, rounds: int, folder: Path, env: Mapping[str, str] | None = None
) -> dict[str, float]:
    """Return the median wall-clock seconds of each command over `rounds` rounds, after a warm-up round."""
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, cwd=folder, capture_output=True, env={**os.environ, **(env or {})})
            if turn:
                taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in taken.items()}


async def by_turns(asking: Mapping[str, Callable[[], Awaitable[None]]], turns: int) -> dict[str, list[float]]:
    """Return the seconds of each function in each turn, after a warm-up turn.

    The order alternates, because the second function runs with the caches that the first leaves.
    """
    for ask in asking.values():
        await ask()
    times: dict[str, list[float]] = {name: [] for name in asking}
    for number in range(turns):
        names = list(asking)
        for name in names if number % 2 else reversed(names):
            began = time.perf_counter()
            await asking[name]()
            times[name].append(time.perf_counter() - began)
    return times
