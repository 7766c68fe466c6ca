"""A watchdog thread that logs code that blocks the event loop.

Neither timeouts nor cancellation can stop code that never awaits. Once a second, the thread schedules a callback on the
loop. If the callback does not run, the thread logs the loop's stack.
"""

from __future__ import annotations

import asyncio
import os
import sys
import threading
import traceback
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Final
from weakref import WeakSet

from ...observability.logs import make_logger
from . import invocation

if TYPE_CHECKING:
    import logging
    from collections.abc import Generator, Sequence
    from types import FrameType

SWITCH: Final = "STUBWRIGHT_WATCHDOG"
"""The environment variable that disables the watchdog when set to `0`."""

HELD: Final = 2.0
"""Seconds without a callback after which the loop counts as blocked."""

_PAUSE: Final = 1.0
"""Seconds between checks."""

_DEBUGGERS: Final = frozenset({"bdb", "debugpy", "_pydevd_bundle"})
"""Top-level modules of debuggers; pdb and similar debuggers use bdb."""

_ADVICE: Final = "write it as a plain `def`, which runs in a thread, or await asynchronous calls"

_watched: WeakSet[asyncio.AbstractEventLoop] = WeakSet()


@contextmanager
def watch_loop(package: str) -> Generator[None, None, None]:
    """Watch the running event loop during the block, unless it is already watched or the watchdog is disabled.

    Args:
        package: The package name for log lines.
    """
    loop = asyncio.get_running_loop()
    if loop in _watched or os.environ.get(SWITCH) == "0":
        yield
        return
    watchdog = _Watchdog(loop, make_logger(package))
    _watched.add(loop)
    watchdog.start()
    try:
        yield
    finally:
        watchdog.stop()
        _watched.discard(loop)


class _Watchdog(threading.Thread):
    """Watches the event loop of the thread that creates it."""

    def __init__(self, loop: asyncio.AbstractEventLoop, log: logging.Logger) -> None:
        super().__init__(name="stubwright-watchdog", daemon=True)
        self._loop = loop
        self._loop_thread = threading.get_ident()
        self._log = log
        self._stopped = threading.Event()
        self._reported: WeakSet[asyncio.Task[object]] = WeakSet()

    def stop(self) -> None:
        self._stopped.set()

    def run(self) -> None:
        """Watch the loop until it is closed or `stop` is called."""
        while not self._stopped.wait(_PAUSE):
            alive = threading.Event()
            try:
                self._loop.call_soon_threadsafe(alive.set)
            except RuntimeError:  # closed
                return
            if not alive.wait(HELD):
                self._report()
                while not (alive.wait(_PAUSE) or self._stopped.is_set()):
                    pass

    def _report(self) -> None:
        """Log the code that blocks the loop, at most once per task."""
        innermost, task = sys._current_frames().get(self._loop_thread), asyncio.current_task(self._loop)
        if innermost is None or self._stopped.is_set():
            return
        stack = [frame for frame, _ in traceback.walk_stack(innermost)][::-1]
        if task in self._reported or _is_idle_or_debugged(stack):
            return
        if task is not None:
            self._reported.add(task)
        handler = _find_handler(stack)
        culprit = innermost if handler is None else handler
        advice = "" if handler is None else f"; {_ADVICE}"
        shown = stack[stack.index(culprit) :]
        self._log.warning(
            "the event loop has been blocked for %g s by %s (%s:%d), so all other calls wait%s\n%s",
            HELD,
            culprit.f_code.co_name,
            Path(culprit.f_code.co_filename).name,
            culprit.f_lineno,
            advice,
            "".join(traceback.format_list(traceback.StackSummary.extract((frame, frame.f_lineno) for frame in shown))),
        )


def _is_idle_or_debugged(stack: Sequence[FrameType]) -> bool:
    """Return whether the event loop is paused in a debugger or waits for events, as after the process was suspended."""
    modules = [str(frame.f_globals.get("__name__")) for frame in stack]
    return modules[-1] == "selectors" or any(name.partition(".")[0] in _DEBUGGERS for name in modules)


def _find_handler(stack: Sequence[FrameType]) -> FrameType | None:
    """Return the outermost frame of a handler, or `None` if no handler is running."""
    called = [inner for outer, inner in pairwise(stack) if outer.f_code.co_filename == invocation.__file__]
    return called[-1] if called else None
