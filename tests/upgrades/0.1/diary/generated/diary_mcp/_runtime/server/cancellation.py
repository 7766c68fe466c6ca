# Part of stubwright's runtime, copied as it is. DO NOT EDIT.
"""The cancellation of a request, as its handler sees it.

Takes functions from the handler and calls them when the request is cancelled; tells whether an exception says that it
is. It cancels nothing itself.
"""

from __future__ import annotations

import asyncio
import math
import threading
from typing import TYPE_CHECKING, Final

import anyio

from ..logs import logger

if TYPE_CHECKING:
    from collections.abc import Callable

_LOG: Final = logger(__name__)


class Cancellation:
    """What a handler wants to be called when its request is cancelled."""

    def __init__(self) -> None:
        """Nothing is cancelled yet."""
        self._lock = threading.Lock()  # handlers in worker threads add, the event loop tells
        self._wanted: list[Callable[[], object]] = []
        self._told = False

    def add(self, function: Callable[[], object]) -> None:
        """Have `function` called: when it happens, or at once where it has happened already."""
        with self._lock:
            if not self._told:
                self._wanted.append(function)
                return
        _call(function)

    def tell(self) -> None:
        """It has happened."""
        with self._lock:
            self._told, wanted, self._wanted = True, self._wanted, []
        for function in wanted:
            _call(function)


def _call(function: Callable[[], object]) -> None:
    try:
        function()
    except Exception:  # noqa: BLE001 - it was given by a handler
        _LOG.exception("what `ctx.on_cancel` was given failed")


def is_cancelled(error: BaseException) -> bool:
    """Whether `error` says that this task is being cancelled; else the handler awaited something that was."""
    if not isinstance(error, anyio.get_cancelled_exc_class()):
        return False
    if anyio.current_effective_deadline() == -math.inf:
        return True
    task = asyncio.current_task() if anyio.get_cancelled_exc_class() is asyncio.CancelledError else None
    return task is not None and task.cancelling() > 0
