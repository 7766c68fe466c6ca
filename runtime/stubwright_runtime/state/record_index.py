"""Rosters: lists of the newest versions of records, which detect restored older versions.

A principal has several rosters, each for a part of its records. A roster is an encrypted list of the existing records
with their versions, and its number grows with each change. Restoring a record requires restoring its roster, too, whose
number is then lower than the number that this process has read, or received from another.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from .nonces import make_nonce

PARTS: Final = 16
"""Rosters of one principal, so that none is long."""

MAX_NONCES: Final = 1_000
"""Marks that one roster remembers; with more, the older half counts as spent."""

_SEEN: Final = 20_000
"""Rosters whose numbers one process remembers."""


_LONG: Final = 30 * 24 * 3600 * 1000
"""Milliseconds that a roster lasts that was made again in the place of one without an end."""


class Entry(NamedTuple):
    """A record: its newest version, and its latest end as a time in milliseconds; `None` is never."""

    version: int
    end: int | None


@dataclass(slots=True)
class RecordIndex:
    """One roster.

    Attributes:
        number: The number of its changes.
        over: The time at which all that was ever in it has ended, in milliseconds; -1 is never.
        oldest: Marks up to this one count as spent.
        records: The records that exist, by their names.
        nonces: The spent marks, each with the time until which it must be remembered, in milliseconds.
    """

    number: int = 0
    over: int = 0
    oldest: str = ""
    records: dict[str, Entry] = field(default_factory=dict[str, Entry])
    nonces: dict[str, int] = field(default_factory=dict[str, int])

    @classmethod
    def load(cls, data: bytes) -> RecordIndex:
        """Parse the output of `dump`."""
        number, over, oldest, records, nonces = json.loads(data)
        return cls(number, over, oldest, {name: Entry(*entry) for name, entry in records.items()}, nonces)

    def dump(self) -> bytes:
        """Return the roster as JSON."""
        fields = [self.number, self.over, self.oldest, self.records, self.nonces]
        return json.dumps(fields, separators=(",", ":")).encode()

    @property
    def end(self) -> int | None:
        """The time at which the whole roster may be forgotten, in milliseconds; `None` is never."""
        is_endless = self.over < 0 or any(entry.end is None for entry in self.records.values())
        return None if is_endless else self.over

    def holds(self, name: str, version: int, now: int) -> bool:
        """Return whether this is the newest version of a record in it."""
        entry = self.records.get(name)
        return entry is not None and entry.version == version and (entry.end is None or now <= entry.end)

    def put(self, name: str, entry: Entry, over: int) -> None:
        """List a version of a record; `over` is when the roster may be forgotten at the earliest."""
        self.records[name] = entry
        self._lasts(over)

    def use_nonce(self, nonce: str, end: int) -> bool:
        """Return whether a mark is new, and remember it."""
        if nonce in self.nonces or nonce <= self.oldest:
            return False
        if len(self.nonces) >= MAX_NONCES:
            older = sorted(self.nonces)[: MAX_NONCES // 2]
            self.oldest = older[-1]
            for forgotten in older:
                del self.nonces[forgotten]
        # The mark itself may be older than all that were kept.
        if nonce <= self.oldest:
            return False
        self.nonces[nonce] = end
        self._lasts(end)
        return True

    def expire(self, now: int) -> None:
        """Forget what has ended."""
        self.records = {name: entry for name, entry in self.records.items() if entry.end is None or now <= entry.end}
        self.nonces = {nonce: end for nonce, end in self.nonces.items() if now <= end}

    def _lasts(self, over: int) -> None:
        self.over = -1 if over < 0 or self.over < 0 else max(self.over, over)


class HighWaterMarks:
    """The highest numbers of rosters that this process has read or received."""

    def __init__(self, most: int = _SEEN) -> None:
        """Remember so many."""
        self._most = most
        self._numbers: OrderedDict[str, tuple[int, int | None]] = OrderedDict()

    def find_number(self, roster: str, now: int | None = None) -> int:
        """Return the lowest possible number of a roster; 0 if it is unknown, or all its records have expired."""
        number, end = self._numbers.get(roster, (0, None))
        if end is None or now is None or now <= end:
            return number
        del self._numbers[roster]
        return 0

    def note(self, roster: str, number: int, end: int | None) -> None:
        """Record a number if it is the highest."""
        if number < self.find_number(roster):
            return
        self._numbers[roster] = number, end
        self._numbers.move_to_end(roster)
        if len(self._numbers) > self._most:
            self._numbers.popitem(last=False)

    def make_empty(self, roster: str, now: int) -> RecordIndex:
        """Return an empty roster in place of a restored or removed one; all marks count as spent."""
        number, end = self._numbers[roster]
        return RecordIndex(number, over=now + _LONG if end is None else end, oldest=make_nonce())


def choose_part(name: str) -> int:
    """Return the number of the principal's roster that something is in."""
    return hashlib.sha256(name.encode()).digest()[0] % PARTS
