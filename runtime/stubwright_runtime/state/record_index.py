"""Detects record rollbacks with encrypted indexes of the current versions.

A principal has several indexes, each for some of its records. An index's number increases with each change. If a record
and its index are restored to an older state, the number is lower than the number this process has seen.
"""

from __future__ import annotations

import hashlib
import json
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from .nonces import make_nonce

PARTS: Final = 16
"""The number of indexes per principal, which keeps each one small."""

MAX_NONCES: Final = 1_000
"""The maximum number of nonces in an index; above it, the older half counts as used."""

_SEEN: Final = 20_000
"""The maximum number of indexes whose numbers a process caches."""


_LONG: Final = 30 * 24 * 3600 * 1000
"""The lifetime of an index that replaces a restored index without an expiry, in milliseconds."""


class Entry(NamedTuple):
    """A record's current version, and the record's expiry in milliseconds (`None` for never)."""

    version: int
    end: int | None


@dataclass(slots=True)
class RecordIndex:
    """An index of some of one principal's records and nonces.

    Attributes:
        number: The number of changes so far.
        over: The time when all past entries have expired, in milliseconds; -1 means never.
        oldest: Nonces up to this one count as used.
        records: The existing records, keyed by name.
        nonces: The used nonces, with their expiry in milliseconds.
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
        """Return the index as JSON."""
        fields = [self.number, self.over, self.oldest, self.records, self.nonces]
        return json.dumps(fields, separators=(",", ":")).encode()

    @property
    def end(self) -> int | None:
        """The index's expiry in milliseconds; `None` means never."""
        is_endless = self.over < 0 or any(entry.end is None for entry in self.records.values())
        return None if is_endless else self.over

    def holds(self, name: str, version: int, now: int) -> bool:
        """Return whether `version` is the record's current version."""
        entry = self.records.get(name)
        return entry is not None and entry.version == version and (entry.end is None or now <= entry.end)

    def put(self, name: str, entry: Entry, over: int) -> None:
        """Set a record's version; the index must not expire before `over`."""
        self.records[name] = entry
        self._extend_life(over)

    def use_nonce(self, nonce: str, end: int) -> bool:
        """Store a nonce and return whether it is new."""
        if nonce in self.nonces or nonce <= self.oldest:
            return False
        if len(self.nonces) >= MAX_NONCES:
            older = sorted(self.nonces)[: MAX_NONCES // 2]
            self.oldest = older[-1]
            for forgotten in older:
                del self.nonces[forgotten]
        # The nonce might be older than the remaining ones.
        if nonce <= self.oldest:
            return False
        self.nonces[nonce] = end
        self._extend_life(end)
        return True

    def expire(self, now: int) -> None:
        """Remove expired records and nonces."""
        self.records = {name: entry for name, entry in self.records.items() if entry.end is None or now <= entry.end}
        self.nonces = {nonce: end for nonce, end in self.nonces.items() if now <= end}

    def _extend_life(self, over: int) -> None:
        self.over = -1 if over < 0 or self.over < 0 else max(self.over, over)


class HighWaterMarks:
    """The highest index numbers that this process has seen."""

    def __init__(self, most: int = _SEEN) -> None:
        """Create an empty cache with a maximum size."""
        self._most = most
        self._numbers: OrderedDict[str, tuple[int, int | None]] = OrderedDict()

    def find_number(self, index: str, now: int | None = None) -> int:
        """Return an index's highest known number, or 0 if the number is unknown or the index has expired."""
        number, end = self._numbers.get(index, (0, None))
        if end is None or now is None or now <= end:
            return number
        del self._numbers[index]
        return 0

    def record(self, index: str, number: int, end: int | None) -> None:
        """Store an index's number if it is the highest so far."""
        if number < self.find_number(index):
            return
        self._numbers[index] = number, end
        self._numbers.move_to_end(index)
        if len(self._numbers) > self._most:
            self._numbers.popitem(last=False)

    def make_empty(self, index: str, now: int) -> RecordIndex:
        """Create an empty index to replace a restored or removed one; all nonces count as used."""
        number, end = self._numbers[index]
        return RecordIndex(number, over=now + _LONG if end is None else end, oldest=make_nonce())


def choose_part(name: str) -> int:
    """Return the position of the principal's index that contains the record with this name."""
    return hashlib.sha256(name.encode()).digest()[0] % PARTS
