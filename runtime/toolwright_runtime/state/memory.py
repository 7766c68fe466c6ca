"""The store that is this process: what it keeps is lost when the process ends.

Takes and gives what the protocol says. Nothing here waits, so that every method is one step for all tasks of the event
loop; what is over is forgotten when something new comes.
"""

from __future__ import annotations

import heapq
import secrets
import time
from collections import defaultdict
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from .budget import Budget, cost
from .nonces import MOST as MARKS
from .nonces import Marks
from .store import MEMORY, Listener, Record

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

_Name = tuple[str, str]
"""A kind and a key, or a kind and an owner."""

_NEVER: Final = float("inf")

_SWEEP: Final = 10.0
"""Seconds between two looks for leases and marks that are over, at least."""


_FEW: Final = 64


@dataclass(slots=True)
class _Kept:
    data: bytes
    head: bytes
    owner: str
    payer: str
    cost: int
    spare: bool
    end: float
    idle: float
    until: float
    version: int = 0

    def use(self, now: float) -> None:
        self.until = min(self.end, now + self.idle)


@dataclass(slots=True)
class _Account:
    """What one payer has: how many bytes, the records, and those of them that are spare, the oldest first."""

    used: int = 0
    records: dict[_Name, None] = field(default_factory=dict[_Name, None])
    spare: dict[_Name, None] = field(default_factory=dict[_Name, None])


class MemoryStore:
    """What one process keeps."""

    url = MEMORY
    is_shared = False
    pool = None
    prefix = ""

    def __init__(self, clock: Callable[[], float] = time.monotonic, budget: Budget | None = None) -> None:
        """Start with nothing; `clock` tells the time in seconds, `budget` how much may be kept."""
        self._clock = clock
        self._budget = budget or Budget()
        self._records: dict[_Name, _Kept] = {}
        self._owned: defaultdict[_Name, dict[str, None]] = defaultdict(dict)
        self._accounts: defaultdict[str, _Account] = defaultdict(_Account)
        self._total = 0
        self._ends: list[tuple[float, _Name]] = []
        self._marks: dict[str, Marks] = {}
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
        payer: str | None = None,
        head: bytes = b"",
        spare: bool = False,
        tracked: bool = False,
    ) -> bool:
        """See the protocol; nobody else writes here, so that nothing needs to be tracked."""
        del tracked
        self._sweep()
        now, name = self._clock(), (kind, key)
        if most is not None and len(self._owned.get((kind, owner), ())) >= most:
            return False
        if name in self._records:
            self._forget(name)
        end, paying, price = (
            now + (_NEVER if ttl is None else ttl),
            owner if payer is None else payer,
            cost(key, data, head),
        )
        self._make_room(paying, price)
        kept = _Kept(data, head, owner, paying, price, spare, end, _NEVER if idle is None else idle, end)
        kept.use(now)
        self._records[name] = kept
        self._owned[kind, owner][key] = None
        account = self._accounts[paying]
        account.used += price
        self._total += price
        account.records[name] = None
        if spare:
            account.spare[name] = None
        if kept.until < _NEVER:
            heapq.heappush(self._ends, (kept.until, name))
        return True

    async def get(self, kind: str, key: str) -> Record | None:
        """See the protocol."""
        if (kept := self._find(kind, key)) is None:
            return None
        kept.use(self._clock())
        return Record(kept.data, kept.version)

    async def size(self, kind: str, key: str) -> int | None:
        """See the protocol."""
        kept = self._find(kind, key)
        return None if kept is None else len(kept.data)

    async def replace(
        self,
        kind: str,
        key: str,
        data: bytes,
        *,
        version: int,
        head: bytes = b"",
        payer: str | None = None,
        final: bool = False,
    ) -> bool:
        """See the protocol."""
        del payer
        kept = self._find(kind, key)
        if kept is None or kept.version != version:
            return False
        price = cost(key, data, head)
        if price > kept.cost and not final:
            self._sweep()
            self._make_room(kept.payer, price - kept.cost)
        self._accounts[kept.payer].used += price - kept.cost
        self._total += price - kept.cost
        kept.data, kept.head, kept.cost, kept.version = data, head, price, version + 1
        kept.use(self._clock())
        return True

    async def delete(self, kind: str, key: str, *, payer: str | None = None) -> bool:
        """See the protocol."""
        del payer
        if self._find(kind, key) is None:
            return False
        self._forget((kind, key))
        return True

    async def owned(self, kind: str, owner: str) -> list[tuple[str, Record]]:
        """See the protocol."""
        return [(key, Record(kept.data, kept.version)) for key, kept in self._all(kind, owner)]

    async def heads(self, kind: str, owner: str) -> list[bytes]:
        """See the protocol."""
        return [kept.head for _, kept in self._all(kind, owner)]

    async def spend(self, mark: str, seconds: float, *, payer: str = "") -> bool:
        """See the protocol."""
        self._sweep()
        return self._marks.setdefault(payer, Marks(self._clock, MARKS)).spend(mark, seconds)

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
        return len(self._records) + sum(map(len, self._marks.values())) + len(self._leases)

    def _all(self, kind: str, owner: str) -> list[tuple[str, _Kept]]:
        found = [(key, self._find(kind, key)) for key in [*self._owned.get((kind, owner), ())]]
        return [(key, kept) for key, kept in found if kept is not None]

    def _find(self, kind: str, key: str) -> _Kept | None:
        kept = self._records.get((kind, key))
        if kept is not None and kept.until <= self._clock():
            self._forget((kind, key))
            return None
        return kept

    def _forget(self, name: _Name) -> None:
        kept, (kind, key) = self._records.pop(name), name
        owned = self._owned[kind, kept.owner]
        del owned[key]
        if not owned:
            del self._owned[kind, kept.owner]
        account = self._accounts[kept.payer]
        account.used -= kept.cost
        self._total -= kept.cost
        del account.records[name]
        account.spare.pop(name, None)
        if not account.records:
            del self._accounts[kept.payer]

    def _make_room(self, payer: str, more: int) -> None:
        """Forget what is spare, the oldest first, as far as that is needed. Raises BudgetExceeded."""
        account = self._accounts.get(payer) or _Account()
        while (whose := self._budget.refuses(more, account.used, self._total)) is not None:
            if not account.spare:
                ends = (self._records[name].until for name in account.records)
                first = min(ends, default=_NEVER) if whose == "caller" else self._ends[0][0] if self._ends else _NEVER
                seconds = None if first == _NEVER else first - self._clock()
                raise self._budget.exceeded(whose, account.used, self._total, seconds)
            self._forget(next(iter(account.spare)))

    def _sweep(self) -> None:
        """Forget what is over: of records all, at once; of the rest now and then."""
        now = self._clock()
        while self._ends and self._ends[0][0] <= now:
            _, name = heapq.heappop(self._ends)
            kept = self._records.get(name)
            if kept is None or kept.until == _NEVER:
                continue
            if kept.until <= now:
                self._forget(name)
            else:  # it was used meanwhile
                heapq.heappush(self._ends, (kept.until, name))
        if len(self._ends) > 2 * len(self._records) + _FEW:  # of records that were deleted before their end
            self._ends = [(kept.until, name) for name, kept in self._records.items() if kept.until < _NEVER]
            heapq.heapify(self._ends)
        if now < self._swept + _SWEEP:
            return
        self._swept = now
        self._leases = {name: lease for name, lease in self._leases.items() if lease[1] > now}
        for marks in self._marks.values():
            marks.expire()
        self._marks = {payer: marks for payer, marks in self._marks.items() if len(marks)}
