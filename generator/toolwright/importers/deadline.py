"""A time by which an import is done, also where it computes and asks nobody.

Takes seconds; interrupts the main thread when they are over. What is interrupted has written nothing yet.
"""

from __future__ import annotations

import _thread
import signal
import threading
import time
from contextlib import contextmanager
from typing import TYPE_CHECKING

from toolwright.importers.reading import RefusedError

if TYPE_CHECKING:
    from collections.abc import Iterator
    from types import FrameType


class TooSlowError(RefusedError):
    """The time is over; the message says how long it was, for people."""


class _OverError(BaseException):
    """Passes through whatever catches an exception."""


class Deadline:
    """The time from now on.

    Attributes:
        seconds: How long it is.
    """

    def __init__(self, seconds: float) -> None:
        """Start the clock, which no change of the system's time moves."""
        self.seconds = seconds
        self._end = time.monotonic() + seconds

    def restart(self) -> None:
        """Begin again, since what came before does not count."""
        self._end = time.monotonic() + self.seconds

    @contextmanager
    def held(self) -> Iterator[None]:
        """Bound what the block computes; only the main thread can be interrupted, and another is not.

        Raises:
            TooSlowError: The time is over.
        """
        before = signal.getsignal(signal.SIGINT)
        if threading.current_thread() is not threading.main_thread() or before is None:
            yield
            return
        left, is_over, is_done = self._end - time.monotonic(), False, False

        def end() -> None:
            nonlocal is_over
            is_over = True
            _thread.interrupt_main()

        def interrupt(number: int, frame: FrameType | None) -> None:
            if is_over and not is_done:
                raise _OverError
            if not is_over and callable(before):
                before(number, frame)

        timer = threading.Timer(max(left, 0), end)
        timer.daemon = True
        signal.signal(signal.SIGINT, interrupt)
        try:
            try:
                timer.start()
                yield
            finally:
                is_done = True
                timer.cancel()
                timer.join()
                signal.signal(signal.SIGINT, before)
        except _OverError:
            raise TooSlowError(f"that takes longer than {self.seconds:g} s; give it more with --timeout") from None
