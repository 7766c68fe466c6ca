"""The handlers' lifespan: they are entered before a server's first connection and exited after the last."""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ...observability.logs import log
from ..execution.cancellation import shield

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Callable

    from typing_extensions import TypeIs


_SLOW: Final = 5.0
"""Seconds before a warning that the handlers' exit is slow."""


def is_entered(handlers: object) -> TypeIs[AbstractAsyncContextManager[Any, Any]]:
    """Return whether handlers are an async context manager."""
    return isinstance(handlers, AbstractAsyncContextManager)


@dataclass(frozen=True)
class Failure:
    """A failure to enter or exit the handlers: a description for messages, and the exception."""

    action: str
    error: Exception


class Lifespan:
    """The lifespan of one server's handlers, shared by all connections."""

    def __init__(
        self,
        handlers: object,
        around: Callable[[], AbstractAsyncContextManager[object]],
        last: Callable[[], object] | None = None,
        within: Callable[[], AbstractAsyncContextManager[object]] = nullcontext,
    ) -> None:
        self.failure: Failure | None = None
        """Set if entering or exiting the handlers failed."""
        self._manager = handlers if is_entered(handlers) else None
        self._around = around
        self._life: _LifespanTask | None = None
        self._last = last
        self._within = within
        self.is_entered = False
        """True while the server has a connection."""

    @asynccontextmanager
    async def __call__(self, _server: object = None) -> AsyncGenerator[dict[str, Any], None]:
        """Enter the handlers for the first of several overlapping blocks, and exit them after the last."""
        try:
            async with self._alive():
                yield {}
        finally:
            if self._last is not None:
                with shield():
                    await asyncio.to_thread(self._last)

    @asynccontextmanager
    async def _alive(self) -> AsyncGenerator[None, None]:
        if self._life is None or not self._life.users:
            self._life = _LifespanTask(self._enter_all(), self._life)
        life = self._life
        life.users += 1
        self.is_entered = True
        try:
            try:
                await life.wait_until_started()
            except Exception as error:
                self.failure = Failure("the handlers failed to start", error)
                raise
            yield
        finally:
            life.users -= 1
            if not life.users:
                self.is_entered = False
                with shield():
                    await self._end(life)

    async def _end(self, life: _LifespanTask) -> None:
        try:
            await life.end()
        except Exception as error:
            self.failure = Failure("the handlers failed to exit", error)
            raise

    @asynccontextmanager
    async def _enter_all(self) -> AsyncGenerator[None, None]:
        async with self._around(), nullcontext() if self._manager is None else self._manager, self._within():
            yield


class _LifespanTask:
    """Enters and exits a context manager in the same task, because some context managers require that."""

    def __init__(self, manager: AbstractAsyncContextManager[Any], before: _LifespanTask | None) -> None:
        self.users = 0
        self._ready = asyncio.Event()
        self._ended = asyncio.Event()
        self._task = asyncio.create_task(self._run(manager, before))

    async def _run(self, manager: AbstractAsyncContextManager[Any], before: _LifespanTask | None) -> None:
        # The previous exit may still be running, and handlers cannot be entered again before it finishes.
        if before is not None and not before._task.done():
            await asyncio.wait([before._task])
        try:
            async with manager:
                self._ready.set()
                await self._ended.wait()
        except SystemExit as end:  # asyncio would stop the event loop immediately
            raise RuntimeError(f"handlers called sys.exit({end.code!r})").with_traceback(end.__traceback__) from None

    async def wait_until_started(self) -> None:
        ready = asyncio.create_task(self._ready.wait())
        try:
            await asyncio.wait([ready, self._task], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self._task.done():
            self._task.result()

    async def end(self) -> None:
        """Exit the manager, or cancel its entry. Re-raise its exception, if any."""
        self._ended.set()
        if not self._ready.is_set():
            self._task.cancel()
        text = "the handlers' __aexit__ has been running for %g seconds; still waiting"
        warning = asyncio.get_running_loop().call_later(_SLOW, log().warning, text, _SLOW)
        try:
            await asyncio.wait([self._task])
        finally:
            warning.cancel()
        if self._ready.is_set():
            self._task.result()
