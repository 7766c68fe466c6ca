"""Limits the bytes that a server stores, per principal and in total."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from ..errors import ToolError
from ..values.units import describe_wait, parse_size

Whose: TypeAlias = Literal["caller", "server"]

OVERHEAD: Final = 1024
"""The overhead per record in bytes, in Redis or in memory."""

EACH: Final = "16MiB"
ALL: Final = "128MiB"
"""The default limits. With Redis's overhead, `ALL` takes less than the 256 MB in `examples/deploy`."""

_UNITS: Final = ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))


class BudgetExceeded(ToolError):
    """The caller's or the server's budget is exhausted, so the data was not stored.

    Attributes:
        whose: Whose budget it is: the caller's or the server's.
        limit: The budget in bytes.
        seconds: Seconds until the first stored item expires, or `None` if none expires on its own.
    """

    def __init__(self, whose: Whose, limit: int, used: int, seconds: float | None) -> None:
        """Create an error from the budget's owner, limit and used bytes, and the seconds until some of them expire."""
        self.whose = whose
        self.limit = limit
        self.seconds = seconds
        when_to_retry = "" if seconds is None else f"Try again in {describe_wait(seconds)}, when some of it expires"
        if whose == "caller":
            what_to_end = "end a handle or cancel a task that you no longer need"
            text = (
                f"You have {format_bytes(used)} of tasks, handles and results stored here. The limit is"
                f" {format_bytes(limit)}, so there is no room for this."
                f" {f'{when_to_retry}, or {what_to_end}' if when_to_retry else what_to_end.capitalize()}."
            )
        else:
            text = (
                f"This server's storage is nearly full: all callers use {format_bytes(used)} of {format_bytes(limit)},"
                f" and no caller can use more than remains free. {when_to_retry or 'Try again later'}."
            )
        super().__init__(text)


@dataclass(frozen=True, slots=True)
class Budget:
    """The limits for stored bytes.

    A principal can use up to `each` bytes, but no more than remain free, so that the next principal always has room.

    Attributes:
        each: The limit for one principal.
        all: The limit for all principals together.
    """

    each: int = parse_size(EACH)
    all: int = parse_size(ALL)

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Budget:
        """Read the budget from a manifest."""
        storage: Mapping[str, Any] = manifest.get("storage") or {}
        return cls(parse_size(storage.get("maxBytesPerPrincipal", EACH)), parse_size(storage.get("maxBytes", ALL)))

    def refuses(self, more: int, own: int, total: int) -> Whose | None:
        """Return the owner of the budget that has no room for `more` bytes, or `None`; `own` and `total` are used."""
        if own + more > self.each:
            return "caller"
        return "server" if own + more > self.all - total - more else None

    def make_exception(self, whose: Whose, own: int, total: int, seconds: float | None) -> BudgetExceeded:
        """Create the exception for an exhausted budget."""
        limit, used = (self.each, own) if whose == "caller" else (self.all, total)
        return BudgetExceeded(whose, limit, used, seconds)


def count_bytes(key: str, *parts: bytes) -> int:
    """Return the bytes that a record uses of a budget, including `OVERHEAD`."""
    return OVERHEAD + len(key.encode()) + sum(map(len, parts))


def format_bytes(number: int) -> str:
    """Format a number of bytes, such as `15.9 MiB`."""
    for unit, name in _UNITS:
        if number >= unit:
            return f"{math.floor(number / unit * 10) / 10:g} {name}"
    return f"{number} bytes"
