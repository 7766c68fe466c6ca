"""Signals that stop a server's process, and its end while a handler is at work in a thread.

A thread cannot be stopped: if one would keep the process alive, `end_without_threads` exits without it.
"""

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

if TYPE_CHECKING:
    import asyncio
    from collections.abc import Callable, Generator
    from types import FrameType

_GRACE: Final = 1.0  # seconds


def stop_signals() -> tuple[signal.Signals, ...]:
    """Return the signals that ask for a stop.

    These are SIGINT, SIGTERM, and SIGHUP unless it is ignored, as `nohup` has it. Windows has SIGBREAK in place of
    SIGHUP: Ctrl-Break, and a console that is closed.
    """
    others: list[signal.Signals] = [getattr(signal, name) for name in ("SIGHUP", "SIGBREAK") if hasattr(signal, name)]
    return signal.SIGINT, signal.SIGTERM, *(each for each in others if signal.getsignal(each) is not signal.SIG_IGN)


@contextmanager
def handle_stop_signals(
    loop: asyncio.AbstractEventLoop, then: Callable[[signal.Signals], None]
) -> Generator[None, None, None]:
    """Call `then` in the loop at each signal that asks for a stop, during the block.

    Loops on Windows have no `add_signal_handler`, but signals wake them.

    Args:
        loop: The loop, which runs in the main thread.
        then: Takes the signal.
    """
    with ExitStack() as stack:
        for number in stop_signals():
            # `getsignal` returns None for a handler that was not set by Python, and `signal` does not take None.
            stack.callback(signal.signal, number, signal.getsignal(number) or signal.SIG_DFL)
            try:
                loop.add_signal_handler(number, then, number)
            except NotImplementedError:
                signal.signal(number, partial(_call_in, loop, then))
            else:
                stack.callback(loop.remove_signal_handler, number)
        yield


def _call_in(
    loop: asyncio.AbstractEventLoop, then: Callable[[signal.Signals], None], number: int, _frame: object
) -> None:
    loop.call_soon_threadsafe(then, signal.Signals(number))


@contextmanager
def observe_stop_signals(loop: asyncio.AbstractEventLoop, then: Callable[[], object]) -> Generator[None, None, None]:
    """Call `then` in the loop at each SIGINT and SIGTERM for which the program has a handler, and that handler.

    This is for a server inside another program, such as an ASGI server: that waits for its open connections before it
    ends its applications, so streams that only listen have to end earlier. Handlers that were added with
    `add_signal_handler` of a loop still run, since the interpreter wakes the loop. If the program has no handler, or
    this is not the main thread, the block runs without changes.

    Args:
        loop: The loop that runs in this thread.
        then: Called at each signal.
    """
    is_main = threading.current_thread() is threading.main_thread()
    numbers = [getattr(signal, name) for name in ("SIGINT", "SIGTERM", "SIGBREAK") if hasattr(signal, name)]
    with ExitStack() as stack:
        for number in numbers if is_main else ():
            handler = signal.getsignal(number)
            if callable(handler) and handler is not signal.default_int_handler:
                stack.enter_context(_overheard(number, handler, partial(loop.call_soon_threadsafe, then)))
        yield


@contextmanager
def _overheard(
    number: signal.Signals, handler: Callable[[int, FrameType | None], object], then: Callable[[], object]
) -> Generator[None, None, None]:
    """Call `then` and the program's own handler at a signal, during the block."""
    is_over = False

    def hear(number: int, frame: FrameType | None) -> None:
        if not is_over:
            then()
        handler(number, frame)

    signal.signal(number, hear)
    try:
        yield
    finally:
        # If the program has set another handler meanwhile, that one may call this one.
        is_over = True
        if signal.getsignal(number) is hear:
            signal.signal(number, handler)


def stop_at_end_of(descriptor: int) -> None:
    """Send this process SIGTERM when a pipe is closed, which includes the end of the process at its other end.

    Args:
        descriptor: The file descriptor of the reading end.
    """

    def read() -> None:
        while os.read(descriptor, 1024):  # not through a file object: its lock would outlast the interpreter
            pass
        signal.raise_signal(signal.SIGTERM)

    threading.Thread(target=read, daemon=True).start()


def end_without_threads() -> None:
    """Give all threads a second to end; if one does not, end the process with status 0.

    Python itself would wait for it without limit, and so would the caller that asked for the stop.
    """
    deadline = time.monotonic() + _GRACE
    threads = [
        thread for thread in threading.enumerate() if not thread.daemon and thread is not threading.current_thread()
    ]
    for thread in threads:
        thread.join(max(0.0, deadline - time.monotonic()))
    if any(thread.is_alive() for thread in threads):
        log().warning("a handler is still running in a thread; exiting without waiting for it")
        logging.shutdown()
        sys.stdout.flush()
        sys.stderr.flush()
        os._exit(0)
