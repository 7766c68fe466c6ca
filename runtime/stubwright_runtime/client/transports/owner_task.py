"""Enters and exits an async context manager in one separate task, as task groups and cancel scopes require."""

from __future__ import annotations

import asyncio
from contextvars import ContextVar, Token, copy_context
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Callable
    from contextlib import AbstractAsyncContextManager


class OwnerTask:
    """A task that keeps a context manager open from `open` to `close`."""

    def __init__(
        self, manager: AbstractAsyncContextManager[Any], name: str, failed: Callable[[Exception], None] | None = None
    ) -> None:
        """Prepare a task for a context manager, without entering it.

        Args:
            manager: The context manager.
            name: The task's name, for debuggers.
            failed: Called when the context manager exits with an exception before `close` is called.
        """
        self._manager = manager
        self._name = name
        self._failed = failed
        self._task: asyncio.Task[None] | None = None
        self._adopted: list[tuple[ContextVar[Any], Token[Any]]] = []

    async def open(self) -> None:
        """Enter the context manager in a new task.

        Raises:
            RuntimeError: The event loop is not asyncio's.
            Exception: Any exception from the context manager.
        """
        import anyio

        _require_asyncio()
        self._scope = anyio.CancelScope()
        self._closing = asyncio.Event()
        is_open = asyncio.get_running_loop().create_future()
        context = copy_context()
        self._task = asyncio.create_task(self._run(is_open), name=self._name, context=context)
        await self._wait_for(self._task, is_open)
        if not is_open.result():
            await self._wait_for(self._task, self._task)
            self._task.result()  # raises the exception from entering
        for variable, value in context.items():  # handlers of an in-process server may set context variables
            if variable.get(_UNSET) is not value:
                self._adopted.append((variable, variable.set(value)))

    def check_loop(self) -> None:
        """Check that the task belongs to the current event loop; `close` would wait forever for a task of another.

        Raises:
            RuntimeError: The task belongs to another event loop.
        """
        if self._task is not None and self._task.get_loop() is not asyncio.get_running_loop():
            raise RuntimeError("this client belongs to another event loop; leave its `async with` block in that loop")

    async def close(self, *, cancel: bool, seconds: float | None = None) -> None:
        """Exit the context manager.

        Args:
            cancel: Whether to cancel the context manager's block.
            seconds: The timeout for exiting; `None` for no limit.

        Raises:
            Exception: Any exception from the context manager.
        """
        task = self._task
        if task is None:
            return
        self._closing.set()
        timer = None
        if cancel:
            self._scope.cancel()
        elif seconds is not None:
            timer = asyncio.get_running_loop().call_later(seconds, self._scope.cancel)
        try:
            await self._wait_for(task, task, shield=cancel)
        finally:
            if timer is not None:
                timer.cancel()
            self._return_variables()
        if not task.cancelled():
            task.result()  # raises the exception from exiting

    async def _run(self, is_open: asyncio.Future[bool]) -> None:
        try:
            with self._scope:
                async with self._manager:
                    is_open.set_result(True)
                    await self._closing.wait()
        except Exception as error:
            if is_open.done() and not self._closing.is_set() and self._failed is not None:
                self._failed(error)
            raise
        finally:
            if not is_open.done():
                is_open.set_result(False)

    async def _wait_for(self, task: asyncio.Task[None], future: asyncio.Future[Any], *, shield: bool = False) -> None:
        """Wait for a future of the task. If the caller is cancelled, cancel the task and wait until the task ends."""
        import anyio

        cancelled: asyncio.CancelledError | None = None
        try:
            with anyio.CancelScope(shield=shield):
                await asyncio.wait([future])
        except asyncio.CancelledError as error:
            cancelled = error
            self._scope.cancel()
        if cancelled is None:
            return
        with anyio.CancelScope(shield=True):
            while not task.done():
                try:
                    await asyncio.wait([task])
                except asyncio.CancelledError as error:  # cancelled again; the task must not outlive this call
                    cancelled = error
        if not task.cancelled():
            task.exception()  # asyncio logs exceptions that are never retrieved
        raise cancelled

    def _return_variables(self) -> None:
        for variable, token in reversed(self._adopted):
            try:
                variable.reset(token)
            except ValueError:  # `close` runs in another context, such as a fixture's teardown
                continue
        self._adopted.clear()


_UNSET: Any = object()


def _require_asyncio() -> None:
    """Raise RuntimeError unless asyncio is running.

    Other event loops cannot start tasks without a task group.
    """
    try:
        task = asyncio.current_task()
    except RuntimeError:  # asyncio is not running
        task = None
    if task is None:
        raise RuntimeError(
            "the typed client requires asyncio, not another event loop such as trio's; run it with "
            "asyncio.run(…), or with anyio.run(…, backend='asyncio')"
        )
