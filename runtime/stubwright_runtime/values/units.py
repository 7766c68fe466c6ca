"""Parses durations, sizes and rates from manifests (`10s`, `64KiB`, `60/minute`), and `Retry-After` headers."""

from __future__ import annotations

import math
import time
from datetime import UTC
from typing import Final

ARGUMENTS: Final = "1MiB"
TASK_ARGUMENTS: Final = "256KiB"
"""The default limits on the size of arguments; tasks have a lower limit, because their arguments are stored."""

_SECONDS: Final = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_BYTES: Final = {"B": 1, "KiB": 1024, "MiB": 1024**2, "GiB": 1024**3}
_LETTERS: Final = "BKMGTibmshd"
_WINDOWS: Final = {"second": 1, "minute": 60, "hour": 3600, "day": 86400}


def parse_duration(duration: str) -> float:
    """Parse a duration such as `10s`. Return seconds."""
    number = duration.rstrip(_LETTERS)
    return int(number) * _SECONDS[duration[len(number) :]]


def parse_size(written: str | int) -> int:
    """Parse a size such as `64KiB`. Return bytes."""
    if isinstance(written, int):
        return written
    number = written.rstrip(_LETTERS)
    return int(number) * _BYTES[written[len(number) :]]


def parse_rate(written: str) -> tuple[int, int]:
    """Parse a rate such as `60/minute`. Return the number of calls and the window in seconds."""
    number, _, window = written.partition("/")
    return int(number), _WINDOWS[window]


def describe_wait(seconds: float) -> str:
    """Format a wait in whole seconds, rounded up, such as `1 second` or `3,600 seconds`."""
    # Round to milliseconds first, because sums of clock times have rounding errors.
    whole = max(1, math.ceil(round(seconds, 3)))
    return "1 second" if whole == 1 else f"{whole:,} seconds"


def parse_retry_after(text: str | None) -> float | None:
    """Parse a `Retry-After` header. Return seconds, at least 0, or `None` if it is missing or invalid.

    Args:
        text: The header value: a number of seconds or an HTTP date.
    """
    text = (text or "").strip()
    if text.isdecimal() and len(text) < 9:
        return float(text)
    from email.utils import parsedate_to_datetime

    try:
        moment = parsedate_to_datetime(text)
        if moment.tzinfo is None:  # HTTP dates are in GMT (RFC 9110, section 5.6.7)
            moment = moment.replace(tzinfo=UTC)
        return max(0.0, moment.timestamp() - time.time())
    except (TypeError, ValueError, OverflowError):
        return None
