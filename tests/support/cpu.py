"""Measures the CPU time of a test process and its descendants."""

from __future__ import annotations

import os
import time
from contextlib import suppress
from pathlib import Path

_TICKS = os.sysconf("SC_CLK_TCK") if hasattr(os, "sysconf") else 100
_STEPS = 1_000_000
_USUAL = 0.045  # CPU seconds for the loop below on an idle 2025 machine
_SHARED = b"forked.py"  # all tests in a process share its imports, so only its children count


def measure() -> float:
    """Return the CPU seconds used so far by this process and its descendants, including exited ones.

    Without `/proc`, only descendants that this process has waited for are included.
    """
    times = os.times()
    return times.user + times.system + times.children_user + times.children_system + _measure_descendants(os.getpid())


def _measure_descendants(process: int) -> float:
    used = 0.0
    for child in _list_children(process):
        with suppress(OSError):  # it has exited in the meantime
            fields = Path(f"/proc/{child}/stat").read_text("ascii", "replace").rpartition(")")[2].split()
            own, waited = (int(fields[11]) + int(fields[12]), int(fields[13]) + int(fields[14]))
            is_shared = _SHARED in Path(f"/proc/{child}/cmdline").read_bytes()
            used += (waited if is_shared else own + waited) / _TICKS
            used += _measure_descendants(child)
    return used


def _list_children(process: int) -> list[int]:
    children: list[int] = []
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            with suppress(OSError):
                children += map(int, (task / "children").read_text("ascii").split())
    return children


def estimate_slowness() -> float:
    """Return a loop's CPU time as a multiple of its time on a typical, idle machine, at least 1."""
    before = time.process_time()
    total = 0
    for number in range(_STEPS):
        total += number
    return max(1.0, (time.process_time() - before) / _USUAL)
