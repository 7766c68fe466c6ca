"""The leases of running tasks, which a thread renews: a handler that blocks the event loop keeps its lease."""

from __future__ import annotations

import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ..observability.logs import log
from ..state.store import StateLost
from ..values.units import parse_duration

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    from ..package import Tool
    from ..state.store import Store

LEASE: Final = "10s"
"""The default of the manifest's `task.lease`."""

RENEWAL: Final = 0.3
"""The interval between two renewals of a lease, as a part of its duration."""


@dataclass(slots=True, eq=False)
class Lease:
    """A lease that this process has.

    Attributes:
        name: Its name in the store.
        holder: Its holder.
        seconds: Its duration from each renewal on.
        due: When it is to be renewed, in seconds of `time.monotonic`.
    """

    name: str
    holder: str
    seconds: float
    due: float = 0.0


def find_duration(tool: Tool | None) -> float:
    """Return the seconds after which a process that has not renewed its lease on a task of a tool counts as dead."""
    settings: Mapping[str, Any] = {} if tool is None else tool.extension.get("task") or {}
    return parse_duration(settings.get("lease", LEASE))


class LeaseRenewer:
    """Renews leases from one thread, which runs while there are any."""

    def __init__(self, store: Store) -> None:
        """Start without leases and without a thread."""
        self._store = store
        self._leases: set[Lease] = set()
        self._changed = threading.Condition()
        self._thread: threading.Thread | None = None

    @contextmanager
    def keep(self, name: str, holder: str, seconds: float) -> Generator[Lease, None, None]:
        """Renew a lease during the block.

        A renewal does not take a lease that has ended: only the event loop does, which also releases it.

        Args:
            name: The name of the lease in the store.
            holder: Its holder, which has it.
            seconds: Its duration from each renewal on.
        """
        lease = Lease(name, holder, seconds, time.monotonic() + seconds * RENEWAL)
        with self._changed:
            self._leases.add(lease)
            self._changed.notify()
            if self._thread is None:
                self._thread = threading.Thread(target=self._run, name="task-leases", daemon=True)
                self._thread.start()
        try:
            yield lease
        finally:
            with self._changed:
                self._leases.discard(lease)
                self._changed.notify()

    def _run(self) -> None:
        while due := self._wait():
            for lease in due:
                lease.due = time.monotonic() + lease.seconds * RENEWAL
                try:
                    self._store.renew(lease.name, lease.holder, lease.seconds)
                except StateLost:
                    log().debug("a lease on a task was not renewed")
                except Exception:  # noqa: BLE001 - the other leases are renewed
                    log().exception("a lease on a task was not renewed")

    def _wait(self) -> list[Lease]:
        """Wait for leases that are due, and return them; without any leases, the thread ends."""
        with self._changed:
            while self._leases:
                now = time.monotonic()
                if due := [lease for lease in self._leases if lease.due <= now]:
                    return due
                self._changed.wait(min(lease.due for lease in self._leases) - now)
            self._thread = None
            return []
