"""Time, size and page limits for imports."""

from __future__ import annotations

import _thread
import signal
import threading
import time
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stubwright.importers.document_reader import SourceError
from stubwright_runtime.client.features.list_pages import MOST_PAGES
from stubwright_runtime.client.transports.bounds import MAX_RESULT_BYTES

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from types import FrameType

TIMEOUT: Final = 60.0
"""The default time limit for all lists in seconds, from a command's first response, or from the start for a URL."""

STARTING: Final = 600.0
"""The default time limit in seconds for a command's first response, which includes package downloads."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits on reading one server.

    Attributes:
        seconds: The time limit for all lists.
        starting: A separate time limit in seconds for the first response, if any.
        size: The maximum response size in bytes, after decompression.
        pages: The maximum number of pages per list.
    """

    seconds: float = TIMEOUT
    starting: float | None = None
    size: int = MAX_RESULT_BYTES
    pages: int = MOST_PAGES


@dataclass(slots=True)
class Progress:
    """The number of pages and entries read so far."""

    pages: int = 0
    entries: int = 0

    def add(self, entries: Sequence[Any]) -> None:
        """Count a page."""
        self.pages += 1
        self.entries += len(entries)

    def describe(self) -> str:
        """Return the counts as a suffix for a message, or an empty string if no page was read."""
        if not self.pages:
            return ""
        pages = "1 page" if self.pages == 1 else f"{self.pages:,} pages"
        entries = "1 entry" if self.entries == 1 else f"{self.entries:,} entries"
        return f" ({pages} with {entries} {'was' if self.pages == 1 else 'were'} read)"

    def describe_overrun(self, seconds: float) -> str:
        """Return the exceeded time limit as a clause to follow the server's name."""
        failure = "did not complete its lists" if self.pages else "did not respond"
        return f"{failure} within {seconds:g} s{self.describe()}"


class TooSlowError(SourceError):
    """The time limit was exceeded."""


class _DeadlineReachedError(BaseException):
    """The deadline was reached. This is not an Exception, so that `except Exception` does not catch it."""


class Deadline:
    """A time limit."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    @property
    def remaining(self) -> float:
        """The remaining seconds; negative after the deadline."""
        return self._end - time.monotonic()

    def restart(self) -> None:
        """Restart the timer."""
        self._end = time.monotonic() + self.seconds

    @contextmanager
    def enforce(self) -> Iterator[None]:
        """Interrupt the block at the deadline if it runs in the main thread.

        Raises:
            TooSlowError: The deadline has passed.
        """
        previous = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or previous is None:
            yield
            return
        remaining, has_expired, is_done = self.remaining, False, False

        def end() -> None:
            nonlocal has_expired
            has_expired = True
            _thread.interrupt_main()

        def interrupt(number: int, frame: FrameType | None) -> None:
            # A timer that fires just after the block must not interrupt later code.
            if has_expired and not is_done:
                raise _DeadlineReachedError
            if not has_expired and callable(previous):
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
                # Let `interrupt` handle a signal that the timer has just sent.
                timer.join()
                signal.signal(signal.SIGINT, previous)
        except _DeadlineReachedError:
            raise TooSlowError(f"it takes longer than {self.seconds:g} s; allow more time with --timeout") from None
