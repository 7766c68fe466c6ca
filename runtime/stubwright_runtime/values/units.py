"""Durations, sizes and rates as manifests write them: `10s`, `64KiB`, `60/minute`.

Takes what `check` has accepted; returns numbers.
"""

from __future__ import annotations

from typing import Final

_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES: Final = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
_LETTERS: Final = "BKMGTibmshd"
_WINDOWS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


def parse_duration(duration: str) -> float:
    """Parse a duration, such as `10s`; returns seconds."""
    number = duration.rstrip(_LETTERS)
    return int(number) * _SECONDS[duration[len(number) :]]


def parse_size(written: str | int) -> int:
    """Parse a size, such as `64KiB`; returns bytes."""
    if isinstance(written, int):
        return written
    number = written.rstrip(_LETTERS)
    return int(number) * _BYTES[written[len(number) :]]


def parse_rate(written: str) -> tuple[int, int]:
    """Parse a rate, such as `60/minute`; returns a number of calls, and the seconds in which they may come."""
    number, _, window = written.partition("/")
    return int(number), _WINDOWS[window]
