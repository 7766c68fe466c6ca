"""The in-memory store.

Methods never await, so each is atomic. Expired records are removed when new ones are created.
"""

from __future__ import annotations

import heapq
import secrets
import threading
import time
from collections import defaultdict
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Final

from .budget import Budget, count_bytes
from .nonces import MAX_NONCES, Nonces
from .store import MEMORY, ClaimedRecord, Listener, Record

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable, Sequence

_Name = tuple[str, str]
"""A kind and a key, or a kind and an owner."""

_NEVER: Final = float("inf")

_SWEEP: Final = 10.0
"""The minimum interval between sweeps of expired leases and nonces, in seconds."""


_FEW: Final = 64


@dataclass(slots=True)
class _Entry:
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
    """A payer's used bytes, records and evictable (`spare`) records, oldest first."""

    used: int = 0
    records: dict[_Name, None] = field(default_factory=dict[_Name, None])
    spare: dict[_Name, None] = field(default_factory=dict[_Name, None])


class MemoryStore:
    """A store in one process's memory."""

    url = MEMORY
    is_shared = False
    pool = None
    prefix = ""

    def __init__(self, clock: Callable[[], float] = time.monotonic, budget: Budget | None = None) -> None:
        """Create an empty store with a budget and a clock that returns seconds."""
        self._clock = clock
        self._budget = budget or Budget()
        self._records: dict[_Name, _Entry] = {}
        self._owned: defaultdict[_Name, dict[str, None]] = defaultdict(dict)
        self._accounts: defaultdict[str, _Account] = defaultdict(_Account)
        self._spare: dict[_Name, None] = {}
        self._total = self._total_spare = 0
        self._ends: list[tuple[float, _Name]] = []
        self._nonces: dict[str, Nonces] = {}
        self._leases: dict[str, tuple[str, float]] = {}
        self._lease_lock = threading.Lock()
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
        room: int = 0,
    ) -> bool:
        """Implement `Store.create`. `tracked` has no effect, because no other process writes."""
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
            count_bytes(key, data, head),
        )
        self._make_room(paying, price + room)
        entry = _Entry(data, head, owner, paying, price, spare, end, _NEVER if idle is None else idle, end)
        entry.use(now)
        self._records[name] = entry
        self._owned[kind, owner][key] = None
        account = self._accounts[paying]
        self._charge(entry, price)
        account.records[name] = None
        if spare:
            account.spare[name] = self._spare[name] = None
        if entry.until < _NEVER:
            heapq.heappush(self._ends, (entry.until, name))
        return True

    async def claim(
        self, kind: str, key: str, data: bytes, *, owner: str, ttl: float, holder: str, lease: float
    ) -> ClaimedRecord | None:
        """Implement `Store.claim`."""
        name = f"{kind}:{key}"
        if (entry := self._find(kind, key)) is not None:
            now = self._clock()
            with self._lease_lock:
                is_held = self._leases.get(name, ("", now))[1] > now
            return ClaimedRecord(Record(entry.data, entry.version), is_held)
        await self.create(kind, key, data, owner=owner, ttl=ttl)
        with self._lease_lock:
            self._leases[name] = (holder, self._clock() + lease)
        return None

    async def get(self, kind: str, key: str) -> Record | None:
        """Implement `Store.get`."""
        if (entry := self._find(kind, key)) is None:
            return None
        entry.use(self._clock())
        return Record(entry.data, entry.version)

    async def measure(self, kind: str, key: str) -> int | None:
        """Implement `Store.measure`."""
        entry = self._find(kind, key)
        return None if entry is None else len(entry.data)

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
        """Implement `Store.replace`."""
        del payer
        entry = self._find(kind, key)
        if entry is None or entry.version != version:
            return False
        price = count_bytes(key, data, head)
        if price > entry.cost and not final:
            self._sweep()
            self._make_room(entry.payer, price - entry.cost)
        self._charge(entry, price - entry.cost)
        entry.data, entry.head, entry.cost, entry.version = data, head, price, version + 1
        entry.use(self._clock())
        return True

    async def delete(self, kind: str, key: str, *, payer: str | None = None) -> bool:
        """Implement `Store.delete`."""
        del payer
        if self._find(kind, key) is None:
            return False
        self._forget((kind, key))
        return True

    async def list_owned(self, kind: str, owner: str) -> list[tuple[str, Record]]:
        """Implement `Store.list_owned`."""
        return [(key, Record(entry.data, entry.version)) for key, entry in self._all(kind, owner)]

    async def list_heads(self, kind: str, owner: str) -> list[bytes]:
        """Implement `Store.list_heads`."""
        return [entry.head for _, entry in self._all(kind, owner)]

    async def use_nonce(self, nonce: str, seconds: float, *, payer: str = "") -> bool:
        """Implement `Store.use_nonce`."""
        self._sweep()
        return self._nonces.setdefault(payer, Nonces(self._clock, MAX_NONCES)).use_nonce(nonce, seconds)

    async def hold(self, name: str, holder: str, seconds: float) -> bool:
        """Implement `Store.hold`."""
        now = self._clock()
        with self._lease_lock:
            has, until = self._leases.get(name, (holder, now))
            if has != holder and until > now:
                return False
            self._leases[name] = (holder, now + seconds)
            return True

    async def release(self, name: str, holder: str) -> None:
        """Implement `Store.release`."""
        with self._lease_lock:
            if name in self._leases and self._leases[name][0] == holder:
                del self._leases[name]

    def renew(self, name: str, holder: str, seconds: float) -> bool:
        """Renew a lease from any thread."""
        now = self._clock()
        with self._lease_lock:
            has, until = self._leases.get(name, ("", now))
            if has != holder or until <= now:
                return False
            self._leases[name] = (holder, now + seconds)
            return True

    async def list_members(self, name: str) -> frozenset[str]:
        """Implement `Store.list_members`."""
        return frozenset(self._sets.get(name, ()))

    async def switch(self, name: str, member: str, *, on: bool) -> bool:
        """Implement `Store.switch`."""
        members = self._sets[name]
        if (member in members) == on:
            return False
        (members.add if on else members.discard)(member)
        return True

    async def publish(self, topic: str, data: bytes) -> None:
        """Implement `Store.publish`."""
        # Iterate over a copy, because a listener may unsubscribe.
        for listener in [*self._listeners.get(topic, ())]:
            await listener(data)

    def listen(self, topic: str, listener: Listener) -> Callable[[], None]:
        """Implement `Store.listen`."""
        self._listeners[topic].append(listener)

        def unsubscribe() -> None:
            if listener in self._listeners[topic]:
                self._listeners[topic].remove(listener)

        return unsubscribe

    async def list_secrets(self) -> Sequence[bytes]:
        """Implement `Store.list_secrets`."""
        return [self._secret]

    @asynccontextmanager
    async def exchange(self, *, writes: bool) -> AsyncGenerator[None, None]:
        """Implement `Store.exchange`."""
        yield

    async def check(self) -> bool:
        """Implement `Store.check`."""
        return True

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None, None]:
        """Implement `Store.run`."""
        yield

    def __len__(self) -> int:
        """Return the number of records, nonces and leases, including expired ones."""
        return len(self._records) + sum(map(len, self._nonces.values())) + len(self._leases)

    def _all(self, kind: str, owner: str) -> list[tuple[str, _Entry]]:
        # Iterate over a copy, because `_find` removes expired records.
        entries = [(key, self._find(kind, key)) for key in [*self._owned.get((kind, owner), ())]]
        return [(key, entry) for key, entry in entries if entry is not None]

    def _find(self, kind: str, key: str) -> _Entry | None:
        entry = self._records.get((kind, key))
        if entry is not None and entry.until <= self._clock():
            self._forget((kind, key))
            return None
        return entry

    def _forget(self, name: _Name) -> None:
        entry, (kind, key) = self._records.pop(name), name
        owned = self._owned[kind, entry.owner]
        del owned[key]
        if not owned:
            del self._owned[kind, entry.owner]
        account = self._accounts[entry.payer]
        self._charge(entry, -entry.cost)
        del account.records[name]
        account.spare.pop(name, None)
        self._spare.pop(name, None)
        if not account.records:
            del self._accounts[entry.payer]

    def _charge(self, entry: _Entry, more: int) -> None:
        self._accounts[entry.payer].used += more
        self._total += more
        self._total_spare += more if entry.spare else 0

    def _make_room(self, payer: str, more: int) -> None:
        """Evict spare records, oldest first, until `more` bytes fit. Raises BudgetExceeded."""
        # Use `get` so that a rejected payer does not create an account.
        account = self._accounts.get(payer) or _Account()
        while (whose := self._budget.refuses(more, account.used, self._total)) is not None:
            spare = account.spare or (self._spare if whose == "server" else {})
            rest = 0 if account.spare else account.used
            if not spare or self._budget.refuses(more, rest, self._total - self._total_spare) is not None:
                # Evicting would not help.
                ends = (self._records[name].until for name in account.records)
                first = min(ends, default=_NEVER) if whose == "caller" else self._ends[0][0] if self._ends else _NEVER
                seconds = None if first == _NEVER else first - self._clock()
                raise self._budget.make_exception(whose, account.used, self._total, seconds)
            self._forget(next(iter(spare)))

    def _sweep(self) -> None:
        """Remove expired records, and, less often, expired leases and nonces."""
        now = self._clock()
        while self._ends and self._ends[0][0] <= now:
            _, name = heapq.heappop(self._ends)
            entry = self._records.get(name)
            # The record was deleted, or replaced with a record that does not expire.
            if entry is None or entry.until == _NEVER:
                continue
            if entry.until <= now:
                self._forget(name)
            else:  # the record's expiry was extended
                heapq.heappush(self._ends, (entry.until, name))
        if len(self._ends) > 2 * len(self._records) + _FEW:  # most entries belong to deleted records
            self._ends = [(entry.until, name) for name, entry in self._records.items() if entry.until < _NEVER]
            heapq.heapify(self._ends)
        if now < self._swept + _SWEEP:
            return
        self._swept = now
        with self._lease_lock:
            self._leases = {name: lease for name, lease in self._leases.items() if lease[1] > now}
        for nonces in self._nonces.values():
            nonces.expire()
        self._nonces = {payer: nonces for payer, nonces in self._nonces.items() if len(nonces)}
