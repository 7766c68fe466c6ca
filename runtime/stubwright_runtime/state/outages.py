"""Deadlines for a remote store, with one log message at the start and one at the end of each outage."""

from __future__ import annotations

import asyncio
import re
import time
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from ..observability.logs import log
from ..observability.scope import SCOPE
from .store import StateLost

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable


PATIENCE: Final = 5.0
"""The total seconds that a request may wait for the store."""

_BRISK: Final = 1.0
"""Seconds within which a healthy store responds. Shorter waits do not count, and a shorter timeout is not an outage."""

_REST: Final = 2.0
"""Seconds after a timeout before the next exchange is attempted."""

_UNSENT: Final = (ConnectionRefusedError, FileNotFoundError)
"""Causes of failures that occur before anything is sent."""

_UNUSABLE: Final = {
    "cluster": "it is in cluster mode, where scripts cannot use keys in several slots",
    "sentinel": "it is Redis Sentinel, which stores no data; use the address of a server that it monitors",
}
"""Unsupported Redis modes."""

_CODE: Final = re.compile(r"(?!WRONGTYPE\b)[A-Z]{2,} ")
"""The prefix of Redis errors that concern the server; an error that concerns a key has another prefix."""


class WaitBudget:
    """The seconds that a request can still wait for the store. After a pause, the full budget is available again."""

    def __init__(self) -> None:
        """Create a full budget."""
        self._left = PATIENCE
        self._waits = 0
        self._since = 0.0
        self._ended = float("-inf")

    def begin(self, now: float) -> float:
        """Start a wait, possibly concurrent with the request's other waits, and return the remaining seconds."""
        if not self._waits:
            self._since = now
            if now > self._ended + _REST:
                self._left = PATIENCE
        self._waits += 1
        return self._left - (now - self._since)

    def end(self, now: float) -> None:
        """Mark the end of a wait for the store."""
        self._waits -= 1
        if not self._waits and now - self._since > _BRISK:
            self._left -= now - self._since
            self._ended = now


class Outages:
    """The availability of one store.

    Attributes:
        failures: Exception types for a failed exchange.
        refusals: Exception types for a refused exchange.
        is_usable: Whether the server runs in a supported mode.
    """

    def __init__(
        self,
        url: str,
        failures: tuple[type[Exception], ...],
        refusals: tuple[type[Exception], ...] = (),
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        """Create the state of an available store.

        Args:
            url: The store's URL, without credentials, for the log.
            failures: Exception types for a failed exchange.
            refusals: Exception types for a refused exchange; the first is used for refusals without their own class.
            clock: Returns the time in seconds.
        """
        self.failures = failures
        self.refusals = refusals
        self.is_usable = True
        self._url = url
        self._clock = clock
        self._quiet_until = float("-inf")
        self._lost_at = float("-inf")
        self._is_lost = False
        self._has_refused = False
        self._failed = 0
        self._unreadable = 0

    @asynccontextmanager
    async def exchange(self, *, writes: bool) -> AsyncGenerator[None, None]:
        """Limit the time of an exchange and record its success or failure.

        Raises:
            StateLost: The store did not respond, or its response was invalid.
        """
        now = self._clock()
        budget: WaitBudget = SCOPE.get().waits or WaitBudget()
        left = budget.begin(now)
        try:
            if left <= 0 or now < self._quiet_until or not self.is_usable:
                self._failed += 1
                raise StateLost(f"{self._url} does not respond")
            if self._quiet_until > float("-inf"):  # let only one exchange probe the store
                self._quiet_until = now + PATIENCE
            try:
                async with asyncio.timeout(left):
                    yield
            except self.failures as error:
                self.mark_down(error, left)
                is_undone = isinstance(error, self.refusals) or _is_caused_by(error, *_UNSENT)
                raise StateLost(f"{self._url} does not respond", is_unknown=writes and not is_undone) from error
            except BaseException:
                # After a cancelled probe, let the next exchange probe.
                self._quiet_until = min(self._quiet_until, self._clock())
                raise
            if now > self._lost_at:  # an exchange that started earlier does not show the current state
                self.mark_up(writes=writes)
        finally:
            budget.end(self._clock())

    def mark_down(self, error: BaseException, waited: float = PATIENCE) -> None:
        """Record a failure; `waited` is the request's timeout."""
        is_hung = waited > _BRISK and _is_caused_by(error, TimeoutError)
        self._quiet_until = self._clock() + _REST if is_hung else float("-inf")
        if self.refusals and type(error) is self.refusals[0] and not _CODE.match(str(error)):
            self.record_unreadable(str(error))
            return
        self._failed += 1
        if not self._is_lost:
            self._is_lost, self._failed, self._lost_at = True, 1, self._clock()
            self._has_refused = isinstance(error, self.refusals)
            log().warning("the store at %s is unavailable: %s", self._url, str(error) or "it does not respond")

    def record_mode(self, mode: str) -> None:
        """Record Redis's mode. Raises StateLost if the mode is not supported."""
        was_usable, self.is_usable = self.is_usable, mode not in _UNUSABLE
        if not self.is_usable:
            if was_usable:
                log().error("the store at %s cannot be used: %s", self._url, _UNUSABLE[mode])
            raise StateLost(f"{self._url} cannot be used")

    def record_unreadable(self, why: str) -> None:
        """Count unreadable data, and log a warning with decreasing frequency."""
        self._unreadable += 1
        if self._unreadable & (self._unreadable - 1) == 0:  # log the first, the second, the fourth, …
            log().warning(
                "data at %s was modified after it was stored (%d times so far): %s",
                self._url,
                self._unreadable,
                why,
            )

    def mark_up(self, *, writes: bool = False) -> None:
        """Record a response. After a refusal, only a successful write ends the outage."""
        self._quiet_until = float("-inf")
        if self._is_lost and (writes or not self._has_refused):
            self._is_lost = False
            log().warning("the store at %s is available again; %d exchanges failed", self._url, self._failed)


def _is_caused_by(error: BaseException | None, *kinds: type[BaseException]) -> bool:
    # The library's TimeoutError has the builtin one as its cause.
    while error is not None:
        if isinstance(error, kinds):
            return True
        error = error.__cause__ or error.__context__
    return False
