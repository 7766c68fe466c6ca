"""Handles stop signals, and exits a process whose handlers still run."""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import TYPE_CHECKING, Final

from ...observability.logs import log
from .event_loop import ABANDONED

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Generator
    from types import FrameType

_GRACE: Final = 1.0  # seconds to wait for threads before exiting

_PATIENCE: Final = 8.0
"""Seconds for a process without its parent to stop: the default grace period, plus a margin."""


def stop_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that stop a server: SIGINT, SIGTERM, and SIGHUP unless it is ignored (`nohup`).

    Windows has SIGBREAK instead of SIGHUP, for Ctrl-Break and a closed console.
    """
    others: list[signal.Signals] = [getattr(signal, name) for name in ("SIGHUP", "SIGBREAK") if hasattr(signal, name)]
    return signal.SIGINT, signal.SIGTERM, *(each for each in others if signal.getsignal(each) is not signal.SIG_IGN)


@contextmanager
def handle_stop_signals(
    loop: asyncio.AbstractEventLoop, then: Callable[[signal.Signals], None]
) -> Generator[None, None, None]:
    """Call `then` on the event loop for each stop signal during the block.

    Args:
        loop: The event loop, which runs in the main thread.
        then: Called with the signal.
    """
    with ExitStack() as stack:
        for number in stop_signals():
            # `getsignal` returns None for a handler that Python did not set, and `signal` does not accept None.
            stack.callback(signal.signal, number, signal.getsignal(number) or signal.SIG_DFL)
            try:
                loop.add_signal_handler(number, then, number)
            except NotImplementedError:  # on Windows, where a signal still wakes the loop
                signal.signal(number, lambda number, _: loop.call_soon_threadsafe(then, signal.Signals(number)))
            else:
                stack.callback(loop.remove_signal_handler, number)
        yield


@contextmanager
def observe_stop_signals(loop: asyncio.AbstractEventLoop, then: Callable[[], object]) -> Generator[None, None, None]:
    """Call `then` on the event loop for each SIGINT and SIGTERM during the block.

    The function is called before the program's own signal handler.

    A program that embeds the server, such as an ASGI server, waits for open connections before it stops its
    applications, so listening streams must close when the signal arrives. Without effect if the program has no signal
    handler, or outside the main thread.

    Args:
        loop: The event loop of this thread.
        then: Called without arguments for each signal.
    """
    is_main = threading.current_thread() is threading.main_thread()
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, name)]
    with ExitStack() as stack:
        for number in numbers if is_main else ():
            handler = signal.getsignal(number)
            if callable(handler) and handler is not signal.default_int_handler:
                stack.enter_context(_observe(number, handler, partial(loop.call_soon_threadsafe, then)))
        yield


@contextmanager
def _observe(
    number: signal.Signals, handler: Callable[[int, FrameType | None], object], then: Callable[[], object]
) -> Generator[None, None, None]:
    has_ended = False

    def observe(number: int, frame: FrameType | None) -> None:
        if not has_ended:
            then()
        handler(number, frame)

    signal.signal(number, observe)
    try:
        yield
    finally:
        # A handler that the program has set in the meantime may still call `observe`.
        has_ended = True
        if signal.getsignal(number) is observe:
            signal.signal(number, handler)


def stop_at_end_of(descriptor: int, seconds: float = _PATIENCE) -> None:
    """Send SIGTERM to this process when a pipe closes, for example because the process at its other end exited.

    Args:
        descriptor: The file descriptor of the pipe's read end.
        seconds: How long the process can continue after SIGTERM, before it is killed.
    """

    def read() -> None:
        while os.read(descriptor, 1024):  # not a file object, whose lock would block the exit
            pass
        signal.raise_signal(signal.SIGTERM)
        time.sleep(seconds)
        os._exit(1)  # no parent is left to kill a process whose handler blocks the event loop

    threading.Thread(target=read, daemon=True).start()


def end_without_handlers(status: int = 0) -> None:
    """Wait a second for all threads; if any thread or task still runs, exit the process with `status`.

    Python itself would wait forever for a thread or task that never finishes.
    """
    deadline = time.monotonic() + _GRACE
    threads = [
        thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.current_thread()
    ]
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    is_blocked = any(thread.is_alive() for thread in threads)
    if is_blocked or ABANDONED:
        where = " in a thread" if is_blocked else ""
        log().warning("a handler is still running%s; exiting without waiting for it", where)
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(status)
