"""A method of the handlers, ready to be called: an `async def` here, a plain `def` in a worker thread.

Takes the handlers object and a method's name; gives what the method gives. It knows nothing of the protocol.
"""

from __future__ import annotations

import asyncio
import inspect
import threading
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import anyio.to_thread

from .cancellation import is_cancelled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from .context import Context


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
            return await self._run((*arguments, context), context)
        except BaseException as error:
            if is_cancelled(error):
                context.cancellation.tell()
            raise

    async def _run(self, arguments: tuple[object, ...], context: Context) -> Any:
        if self._is_async:
            return await _awaited(self._function(*arguments))
        let_go, started = context.occupancy.hold(), threading.Lock()
        try:
            value, error = await anyio.to_thread.run_sync(
                _outcome, self._function, arguments, let_go, started, abandon_on_cancel=True
            )
        except BaseException:
            if started.acquire(blocking=False):  # it waited for a thread, and must not run any more
                let_go()
            raise
        if error is not None:
            raise error
        return await _awaited(value) if inspect.isawaitable(value) else value


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


def _outcome(
    function: Callable[..., Any], arguments: tuple[object, ...], let_go: Callable[[], None], started: threading.Lock
) -> tuple[Any, BaseException | None]:
    """What a method gives and what it raises; not every exception can be thrown from a thread into a coroutine."""
    if not started.acquire(blocking=False):
        return None, None
    try:
        return function(*arguments), None
    except BaseException as error:  # noqa: BLE001 - it is raised again, in the coroutine
        return None, error
    finally:
        let_go()
