"""Budgets of the bytes that a server keeps: for one principal, and for all of them together."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal, TypeAlias

from ..errors import ToolError
from ..values.units import describe_wait, parse_size

Whose: TypeAlias = Literal["caller", "server"]

OVERHEAD: Final = 1024
"""Bytes that a record costs next to its key and its data: its fields and indexes in Redis, its objects in memory."""

EACH: Final = "16MiB"
ALL: Final = "128MiB"
"""The defaults. All of it takes less than the 256 MB of Redis in `examples/deploy`, with Redis' own overhead."""

_UNITS: Final = ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))


class BudgetExceeded(ToolError):
    """The budget of the caller or of the whole server is exhausted, so the data were not stored.

    Attributes:
        whose: The owner of the budget: the caller or the server.
        limit: Its size in bytes.
        seconds: Seconds until the first stored item expires; `None` if none expires on its own.
    """

    def __init__(self, whose: Whose, limit: int, used: int, seconds: float | None) -> None:
        """Take the owner of the budget, its size, its used bytes, and the seconds until some are free again."""
        self.whose = whose
        self.limit = limit
        self.seconds = seconds
        when_to_retry = "" if seconds is None else f"Try again in {describe_wait(seconds)}, when some of it expires"
        if whose == "caller":
            what_to_end = "end a handle or cancel a task that you no longer need"
            text = (
                f"You have {format_bytes(used)} of tasks, handles and results stored here, and the limit is"
                f" {format_bytes(limit)}: this does not fit."
                f" {f'{when_to_retry}, or {what_to_end}' if when_to_retry else what_to_end.capitalize()}."
            )
        else:
            text = (
                f"The storage of this server is used up: {format_bytes(used)} of {format_bytes(limit)} for all callers"
                f" together, and what is left is shared. {when_to_retry or 'Try again later'}."
            )
        super().__init__(text)


@dataclass(frozen=True, slots=True)
class Budget:
    """The bytes that may be kept.

    A principal may have `each`, and never more than the rest that is left for all others. So however many principals
    use up their share, some of the total stays for the next one.

    Attributes:
        each: For one principal.
        all: For all principals together.
    """

    each: int = parse_size(EACH)
    all: int = parse_size(ALL)

    @classmethod
    def from_manifest(cls, manifest: Mapping[str, Any]) -> Budget:
        """Return the budget that a manifest has."""
        storage: Mapping[str, Any] = manifest.get("storage") or {}
        return cls(parse_size(storage.get("maxBytesPerPrincipal", EACH)), parse_size(storage.get("maxBytes", ALL)))

    def refuses(self, more: int, own: int, total: int) -> Whose | None:
        """Return the budget that has no room for `more` bytes if the caller uses `own` of `total`; `None` if there is
        room.
        """
        if own + more > self.each:
            return "caller"
        return "server" if own + more > self.all - total - more else None

    def make_exception(self, whose: Whose, own: int, total: int, seconds: float | None) -> BudgetExceeded:
        """Return the exception for a budget that is used up."""
        limit, used = (self.each, own) if whose == "caller" else (self.all, total)
        return BudgetExceeded(whose, limit, used, seconds)


def count_bytes(key: str, *parts: bytes) -> int:
    """Count the bytes of a record."""
    return OVERHEAD + len(key.encode()) + sum(map(len, parts))


def format_bytes(number: int) -> str:
    """Format a number of bytes for people: `15.9 MiB`."""
    for unit, name in _UNITS:
        if number >= unit:
            return f"{math.floor(number / unit * 10) / 10:g} {name}"
    return f"{number} bytes"
