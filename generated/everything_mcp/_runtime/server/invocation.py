# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""A method of the handlers, ready to be called: an `async def` here, a plain `def` in a worker thread.

Takes the handlers object and a method's name; gives what the method gives. It knows nothing of the protocol.
"""

from __future__ import annotations

import asyncio
import inspect
import math
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import anyio
import anyio.to_thread

from ..logs import logger

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .context import Context

_LOG: Final = logger(__name__)


@dataclass(frozen=True, slots=True)
class Method:
    """One method of the handlers."""

    name: str
    _function: Callable[..., Any]
    _is_async: bool

    @classmethod
    def of(cls, handlers: object, name: str) -> Method:
        """Look the method up."""
        function = getattr(handlers, name)
        return cls(name, function, inspect.iscoroutinefunction(function))

    async def __call__(self, *arguments: object, context: Context) -> Any:
        """Run it, with the context as its last argument. A plain `def` runs in a worker thread, so that it can block.

        Where the request is cancelled, the context is told; the thread of a plain `def` runs on by itself.
        """
        try:
            return await self._run((*arguments, context))
        except BaseException as error:
            if is_cancelled(error):
                context.cancellation.tell()
            raise

    async def _run(self, arguments: tuple[object, ...]) -> Any:
        if self._is_async:
            return await _awaited(self._function(*arguments))
        value, error = await anyio.to_thread.run_sync(_outcome, self._function, arguments, abandon_on_cancel=True)
        if error is not None:
            raise error
        return await _awaited(value) if inspect.isawaitable(value) else value


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


async def _awaited(value: Awaitable[Any]) -> Any:
    """What an awaitable gives; where it raises, its own cancellations are forgotten.

    A `TaskGroup` of asyncio that fails cancels the task it stands in, and before Python 3.13 does not take that back;
    whatever that task awaits next would be cancelled.
    """
    task = asyncio.current_task()
    before = 0 if task is None else task.cancelling()
    try:
        return await value
    except BaseException as error:
        while task is not None and task.cancelling() > before and not isinstance(error, asyncio.CancelledError):
            task.uncancel()
        raise


def _outcome(function: Callable[..., Any], arguments: tuple[object, ...]) -> tuple[Any, BaseException | None]:
    """What a method gives and what it raises; not every exception can be thrown from a thread into a coroutine."""
    try:
        return function(*arguments), None
    except BaseException as error:  # noqa: BLE001 - it is raised again, in the coroutine
        return None, error


def is_cancelled(error: BaseException) -> bool:
    """Whether `error` says that this task is being cancelled; else the handler awaited something that was."""
    if not isinstance(error, anyio.get_cancelled_exc_class()):
        return False
    if anyio.current_effective_deadline() == -math.inf:
        return True
    task = asyncio.current_task() if anyio.get_cancelled_exc_class() is asyncio.CancelledError else None
    return task is not None and task.cancelling() > 0
