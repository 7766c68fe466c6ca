"""A method of the handlers, ready to be called: an `async def` here, a plain `def` in a worker thread.

Takes the handlers object and a method's name; gives the result of the method, or of the handlers' `around`, which runs
around it. It does not depend on the protocol.
"""

from __future__ import annotations

import asyncio
import inspect
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from .around import HandlerCall, find_around
from .cancellation import is_cancelled

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from ..core.context import Context
    from .around import Around, Kind


@dataclass(frozen=True, slots=True)
class Method:
    """One method of the handlers."""

    name: str
    kind: Kind
    _function: Callable[..., Any]
    _is_async: bool
    _around: Around | None

    @classmethod
    def find(cls, handlers: object, name: str, kind: Kind) -> Method:
        """Look up the method, and the `around` of the handlers."""
        function = getattr(handlers, name)
        return cls(name, kind, function, inspect.iscoroutinefunction(function), find_around(handlers))

    async def __call__(self, *arguments: object, context: Context) -> Any:
        """Run it, with the context as its last argument. A plain `def` runs in a worker thread, so that it can block.

        If the request is cancelled, the context is told; the thread of a plain `def` runs on by itself.

        Raises:
            NoFreeThreadError: It needs a thread, and there was none in time.
        """
        context.slot.method = self.name
        try:
            if self._around is None:
                return await self._run((*arguments, context), context)
            return await self._run_around(self._around, arguments, context)
        except BaseException as error:
            if is_cancelled(error):
                context.cancellation.tell()
            raise

    async def _run_around(self, around: Around, arguments: tuple[object, ...], context: Context) -> Any:
        given: Any = None

        async def proceed() -> Any:
            nonlocal given
            given = await self._run((*arguments, context), context)
            return given

        call = HandlerCall(self.kind, self.name, arguments[0] if arguments else None, context)
        value = await _await_value(around(call, proceed))
        if value is None and given is not None:
            raise TypeError(f"`around` returned None for {self.name}; end it with `return await proceed()`")
        return value

    async def _run(self, arguments: tuple[object, ...], context: Context) -> Any:
        if self._is_async:
            return await _await_value(self._function(*arguments))
        value = await context.slot.run_in_thread(partial(self._function, *arguments))
        return await _await_value(value) if inspect.isawaitable(value) else value


async def _await_value(value: Awaitable[Any]) -> Any:
    """Await a value; if it raises, undo the cancellations that it made.

    A `TaskGroup` of asyncio that fails cancels its parent task, and before Python 3.13 does not take that back; the
    next await of that task would be cancelled.
    """
    task = asyncio.current_task()
    before = 0 if task is None else task.cancelling()
    try:
        return await value
    except BaseException as error:
        while task is not None and task.cancelling() > before and not isinstance(error, asyncio.CancelledError):
            task.uncancel()
        raise
