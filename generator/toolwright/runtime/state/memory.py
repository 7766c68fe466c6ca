"""The store that is this process: what it keeps is lost when the process ends.

Takes and gives what the protocol says. Nothing here waits, so that every method is one step for all tasks of the event
loop; what is over is forgotten when something new comes.
"""

from __future__ import annotations

import secrets
import time
from collections import defaultdict
from contextlib import asynccontextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from .marks import Marks
from .store import MEMORY, Listener, Record

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

_Name = tuple[str, str]
"""A kind and a key, or a kind and an owner."""

_NEVER: Final = float("inf")

_SWEEP: Final = 10.0
"""Seconds between two looks for what is over, at least."""


@dataclass(slots=True)
class _Kept:
    data: bytes
    owner: str
    end: float
    idle: float
    until: float
    version: int = 0

    def use(self, now: float) -> None:
        self.until = min(self.end, now + self.idle)


class MemoryStore:
    """What one process keeps."""

    url = MEMORY
    is_shared = False
    pool = None
    prefix = ""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        """Start with nothing; `clock` tells the time in seconds."""
        self._clock = clock
        self._records: dict[_Name, _Kept] = {}
        self._owned: defaultdict[_Name, dict[str, None]] = defaultdict(dict)
        self._marks = Marks(clock)
        self._leases: dict[str, tuple[str, float]] = {}
        self._sets: defaultdict[str, set[str]] = defaultdict(set)
        self._listeners: defaultdict[str, list[Listener]] = defaultdict(list)
        self._secret = secrets.token_bytes(32)
        self._swept = clock()

    async def create(
        self,
        kind: str,
        key: str,
        data: bytes,
        *,
        owner: str,
        ttl: float | None,
        idle: float | None = None,
        most: int | None = None,
    ) -> bool:
        """See the protocol."""
        self._sweep()
        now, owned = self._clock(), self._owned[kind, owner]
        if most is not None and len(owned) >= most:
            for other in [*owned]:
                self._find(kind, other)
            if len(owned) >= most:
                return False
        end = now + (_NEVER if ttl is None else ttl)
        kept = _Kept(data, owner, end, _NEVER if idle is None else idle, end)
        kept.use(now)
        self._records[kind, key] = kept
        self._owned[kind, owner][key] = None
        return True

    async def get(self, kind: str, key: str) -> Record | None:
        """See the protocol."""
        if (kept := self._find(kind, key)) is None:
            return None
        kept.use(self._clock())
        return Record(kept.data, kept.version)

    async def replace(self, kind: str, key: str, data: bytes, *, version: int) -> bool:
        """See the protocol."""
        kept = self._find(kind, key)
        if kept is None or kept.version != version:
            return False
        kept.data, kept.version = data, version + 1
        kept.use(self._clock())
        return True

    async def delete(self, kind: str, key: str) -> bool:
        """See the protocol."""
        if self._find(kind, key) is None:
            return False
        self._forget(kind, key)
        return True

    async def owned(self, kind: str, owner: str) -> list[tuple[str, Record]]:
        """See the protocol."""
        found = [(key, self._find(kind, key)) for key in [*self._owned.get((kind, owner), ())]]
        return [(key, Record(kept.data, kept.version)) for key, kept in found if kept is not None]

    async def spend(self, mark: str, seconds: float) -> bool:
        """See the protocol."""
        return self._marks.spend(mark, seconds)

    async def hold(self, name: str, holder: str, seconds: float) -> bool:
        """See the protocol."""
        now = self._clock()
        has, until = self._leases.get(name, (holder, now))
        if has != holder and until > now:
            return False
        self._leases[name] = (holder, now + seconds)
        return True

    async def release(self, name: str, holder: str) -> None:
        """See the protocol."""
        if name in self._leases and self._leases[name][0] == holder:
            del self._leases[name]

    async def members(self, name: str) -> frozenset[str]:
        """See the protocol."""
        return frozenset(self._sets.get(name, ()))

    async def switch(self, name: str, member: str, *, on: bool) -> bool:
        """See the protocol."""
        members = self._sets[name]
        if (member in members) == on:
            return False
        (members.add if on else members.discard)(member)
        return True

    async def publish(self, topic: str, data: bytes) -> None:
        """See the protocol."""
        for listener in [*self._listeners.get(topic, ())]:
            await listener(data)

    def hear(self, topic: str, listener: Listener) -> Callable[[], None]:
        """See the protocol."""
        self._listeners[topic].append(listener)

        def leave() -> None:
            if listener in self._listeners[topic]:
                self._listeners[topic].remove(listener)

        return leave

    async def secrets(self) -> Sequence[bytes]:
        """See the protocol."""
        return [self._secret]

    @asynccontextmanager
    async def exchange(self, *, writes: bool) -> AsyncGenerator[None, None]:
        """See the protocol."""
        yield

    async def check(self) -> bool:
        """See the protocol."""
        return True

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None, None]:
        """See the protocol."""
        yield

    def __len__(self) -> int:
        """How many records, marks and leases it remembers, also those that are over."""
        return len(self._records) + len(self._marks) + len(self._leases)

    def _find(self, kind: str, key: str) -> _Kept | None:
        kept = self._records.get((kind, key))
        if kept is not None and kept.until <= self._clock():
            self._forget(kind, key)
            return None
        return kept

    def _forget(self, kind: str, key: str) -> None:
        owner = self._records.pop((kind, key)).owner
        owned = self._owned[kind, owner]
        del owned[key]
        if not owned:
            del self._owned[kind, owner]

    def _sweep(self) -> None:
        now = self._clock()
        if now < self._swept + _SWEEP:
            return
        self._swept = now
        for kind, key in [name for name, kept in self._records.items() if kept.until <= now]:
            self._forget(kind, key)
        self._leases = {name: lease for name, lease in self._leases.items() if lease[1] > now}
