"""A time by which an import ends, also while it computes.

Takes seconds; interrupts the main thread when they are over. The interrupted code has written nothing yet.
"""

from __future__ import annotations

import _thread
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from stubwright.importers.reading import SourceError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


class TooSlowError(SourceError):
    """The time is over; the message says how long it was, for people."""


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

    def restart(self) -> None:
        """Begin again, because the time until now does not count."""
        self._end = time.monotonic() + self.seconds

    @contextmanager
    def enforce(self) -> Iterator[None]:
        """Interrupt the block when the time is over, if it runs in the main thread; other threads are not interrupted.

        Raises:
            TooSlowError: The time is over.
        """
        previous = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or previous is None:
            yield
            return
        remaining, is_over, is_done = self._end - time.monotonic(), False, False

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
