"""Callbacks for cancelled requests, and detection of cancellation."""

from __future__ import annotations

import asyncio
import math
import threading
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING

from ...observability.logs import log
from ...values.modules import find_loaded

if TYPE_CHECKING:
    from collections.abc import Callable


class Cancellation:
    """The callbacks to run when a request is cancelled."""

    def __init__(self) -> None:
        self._lock = threading.Lock()  # worker threads add callbacks; the event loop calls them
        self._functions: list[Callable[[], object]] = []
        self._is_cancelled = False

    def add(self, function: Callable[[], object]) -> None:
        """Register a callback, or call it immediately if the request is already cancelled."""
        with self._lock:
            if not self._is_cancelled:
                self._functions.append(function)
                return
        # Not under the lock, because the callback may register another.
        _call(function)

    def cancel(self) -> None:
        """Mark the request as cancelled and run the registered callbacks."""
        with self._lock:
            self._is_cancelled, functions, self._functions = True, self._functions, []
        for function in functions:
            _call(function)


def _call(function: Callable[[], object]) -> None:
    try:
        function()
    except Exception:  # noqa: BLE001 - a handler's function
        log().exception("a callback registered with `ctx.on_cancel` failed")


def is_cancelled(error: BaseException) -> bool:
    """Return whether an exception cancels the current task, rather than a task that it awaits."""
    if not isinstance(error, asyncio.CancelledError):
        return False
    anyio = find_loaded("anyio")
    # An infinitely early deadline means that an enclosing cancel scope is cancelled.
    if anyio is not None and anyio.current_effective_deadline() == -math.inf:
        return True
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0


def shield() -> AbstractContextManager[object]:
    """Return a context manager that shields a block from anyio's cancel scopes, if anyio is in use."""
    anyio = find_loaded("anyio")
    return nullcontext() if anyio is None else anyio.CancelScope(shield=True)
