"""Times commands side by side: each round runs every command once, so that a busy machine slows all of them alike."""

from __future__ import annotations

import os
import statistics
import subprocess
import time
from collections.abc import Mapping, Sequence
from pathlib import Path


def medians(
    commands: Mapping[str, Sequence[str]], *, rounds: int, folder: Path, env: Mapping[str, str] | None = None
) -> dict[str, float]:
    """The median wall-clock time of each command in seconds, over `rounds` rounds after one to warm up."""
    taken: dict[str, list[float]] = {name: [] for name in commands}
    for turn in range(rounds + 1):
        for name, command in commands.items():
            start = time.perf_counter()
            subprocess.run(command, check=True, cwd=folder, capture_output=True, env={**os.environ, **(env or {})})
            if turn:
                taken[name].append(time.perf_counter() - start)
    return {name: statistics.median(times) for name, times in taken.items()}
