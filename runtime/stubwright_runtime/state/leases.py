"""Renews leases from a thread, even while a handler blocks the event loop."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from ..observability.logs import log
from .store import StateLost

if TYPE_CHECKING:
    from collections.abc import Generator

    from .store import Store

RENEWAL: Final = 0.3
"""The interval between lease renewals, as a fraction of the lease's duration."""


@dataclass(slots=True, eq=False)
class Lease:
    """A lease that this process holds.

    Attributes:
        name: The lease's name in the store.
        holder: The ID of the lease's holder.
        seconds: The duration after each renewal.
        due: The `time.monotonic` time of the next renewal.
    """

    name: str
    holder: str
    seconds: float
    due: float = 0.0


class LeaseRenewer:
    """Renews leases from one thread, which stops when this process has no leases."""

    def __init__(self, store: Store) -> None:
        """Create a renewer without leases."""
        self._store = store
        self._leases: set[Lease] = set()
        self._changed = threading.Condition()
        self._wakes = 0.0  # the thread waits until the next renewal is due, so that short calls do not wake it
        self._thread: threading.Thread | None = None

    @contextmanager
    def keep(self, name: str, holder: str, seconds: float) -> Generator[Lease, None, None]:
        """Renew a lease during the block.

        A renewal does not reacquire an expired lease; only the event loop acquires and releases leases.

        Args:
            name: The lease's name in the store.
            holder: The holder, which has acquired the lease.
            seconds: The duration after each renewal.
        """
        lease = Lease(name, holder, seconds, time.monotonic() + seconds * RENEWAL)
        with self._changed:
            self._leases.add(lease)
            if lease.due < self._wakes:
                self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="leases", daemon=True)
                self._thread.start()
        try:
            yield lease
        finally:
            with self._changed:
                self._leases.discard(lease)

    def _run(self) -> None:
        while due := self._wait():
            for lease in due:
                lease.due = time.monotonic() + lease.seconds * RENEWAL
                try:
                    self._store.renew(lease.name, lease.holder, lease.seconds)
                except StateLost:
                    log().debug("a lease was not renewed")
                except Exception:  # noqa: BLE001 - renew the other leases
                    log().exception("a lease was not renewed")

    def _wait(self) -> list[Lease]:
        """Wait until leases are due, and return them. Return an empty list, which ends the thread, if none are left."""
        with self._changed:
            while self._leases:
                now = time.monotonic()
                if due := [lease for lease in self._leases if lease.due <= now]:
                    return due
                self._wakes = min(lease.due for lease in self._leases)
                self._changed.wait(self._wakes - now)
            self._thread = None
            return []
