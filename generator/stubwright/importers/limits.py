"""Limits of an import in time, bytes and pages, and the count of the pages that were read.

A deadline interrupts the main thread, also while it computes; the interrupted code has written nothing yet.
"""

from __future__ import annotations

import _thread
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stubwright.importers.reading import SourceError
from stubwright_runtime.client.features.list_pages import MOST_PAGES
from stubwright_runtime.client.transports.bounds import MAX_RESULT_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

TIMEOUT: Final = 60.0
"""Seconds for all lists by default: from the server's first answer on, or for a URL from the start."""

STARTING: Final = 600.0
"""Seconds until the first answer of a command by default: its package manager may have to fetch it first."""


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits on reading one server.

    Attributes:
        seconds: Seconds for everything.
        starting: Seconds until the first answer; None if these count as part of `seconds`.
        size: Bytes that the server may send in all, after decompression.
        pages: Pages that a list may have.
    """

    seconds: float = TIMEOUT
    starting: float | None = None
    size: int = MAX_RESULT_BYTES
    pages: int = MOST_PAGES


@dataclass(slots=True)
class Progress:
    """The pages of lists that were read so far.

    Attributes:
        pages: Their number.
        entries: The number of entries on them.
    """

    pages: int = 0
    entries: int = 0

    def add(self, entries: Sequence[Any]) -> None:
        """Count a page."""
        self.pages += 1
        self.entries += len(entries)

    def describe(self) -> str:
        """Return the count as a clause for the end of a message; empty if no page was read."""
        if not self.pages:
            return ""
        pages = "1 page" if self.pages == 1 else f"{self.pages:,} pages"
        entries = "1 entry" if self.entries == 1 else f"{self.entries:,} entries"
        return f" ({pages} with {entries} had been read)"


class TooSlowError(SourceError):
    """The time has ended; the message describes how long it was, for people."""


class _DeadlineReachedError(BaseException):
    """Not an Exception, so that no `except Exception` catches it."""


class Deadline:
    """The time from now on.

    Attributes:
        seconds: Its length.
    """

    def __init__(self, seconds: float) -> None:
        """Start the clock, which no change of the system's time moves."""
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def remaining(self) -> float:
        """The seconds that are left; negative once the time has ended."""
        return self._end - time.monotonic()

    def restart(self) -> None:
        """Begin again, because the time until now does not count."""
        self._end = time.monotonic() + self.seconds

    @contextmanager
    def enforce(self) -> Iterator[None]:
        """Interrupt the block when the time has ended, if it runs in the main thread; other threads are not
        interrupted.

        Raises:
            TooSlowError: The time has ended.
        """
        previous = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or previous is None:
            yield
            return
        remaining, is_over, is_done = self.remaining, False, False

        def end() -> None:
            nonlocal is_over
            is_over = True
            _thread.interrupt_main()

        def interrupt(number: int, frame: FrameType | None) -> None:
            # A timer that fires when the block has just ended must not interrupt what comes after it.
            if is_over and not is_done:
                raise _DeadlineReachedError
            if not is_over and callable(previous):
                previous(number, frame)

        timer = threading.Timer(max(remaining, 0), end)
        timer.daemon = True
        signal.signal(signal.SIGINT, interrupt)
        try:
            try:
                timer.start()
                yield
            finally:
                is_done = True
                timer.cancel()
                # A signal that it has just sent is still taken by `interrupt`, and not by the handler of before.
                timer.join()
                signal.signal(signal.SIGINT, previous)
        except _DeadlineReachedError:
            raise TooSlowError(f"that takes longer than {self.seconds:g} s; allow more time with --timeout") from None
