"""The handlers' own life: entered when the server starts, left when it stops.

All are entered once, before its first connection, and left once, after the last.
"""

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
"""Seconds after which the log reports that handlers are still ending, since the stop would look like a hang."""


def is_entered(handlers: object) -> TypeIs[AbstractAsyncContextManager[Any, Any]]:
    """Return whether handlers are an async context manager."""
    return isinstance(handlers, AbstractAsyncContextManager)


@dataclass(frozen=True)
class Failure:
    """A start or an end of handlers that failed: what they could not do, in words, and the exception."""

    what: str
    error: Exception


class Lifespan:
    """The lifespan of one server, shared by its connections."""

    def __init__(
        self,
        handlers: object,
        around: Callable[[], AbstractAsyncContextManager[object]],
        last: Callable[[], object] | None = None,
        within: Callable[[], AbstractAsyncContextManager[object]] = nullcontext,
    ) -> None:
        """Take the handlers, which need not be an async context manager.

        Args:
            handlers: The handlers.
            around: Makes the context manager that is entered before them and left after them.
            last: Is called when all has ended.
            within: Makes the context manager that is entered after them and left before them.
        """
        self.failure: Failure | None = None
        """The reason if the handlers could not start, or end."""
        self._manager = handlers if is_entered(handlers) else None
        self._around = around
        self._life: _Life | None = None
        self._last = last
        self._within = within

    @property
    def is_entered(self) -> bool:
        """True if it has begun and is not over."""
        return self._life is not None and self._life.users > 0

    @asynccontextmanager
    async def __call__(self, _server: object = None) -> AsyncGenerator[dict[str, Any], None]:
        """Keep the handlers alive while the body runs."""
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
            self._life = _Life(self._both(), self._life)
        life = self._life
        life.users += 1
        try:
            try:
                await life.wait_until_started()
            except Exception as error:
                self.failure = Failure("the handlers could not start", error)
                raise
            yield
        finally:
            life.users -= 1
            if not life.users:
                with shield():
                    await self._end(life)

    async def _end(self, life: _Life) -> None:
        try:
            await life.end()
        except Exception as error:
            self.failure = Failure("the handlers could not end", error)
            raise

    @asynccontextmanager
    async def _both(self) -> AsyncGenerator[None, None]:
        async with self._around(), nullcontext() if self._manager is None else self._manager, self._within():
            yield


class _Life:
    """One stay in the context manager, in its own task: it must be left in the task that entered it."""

    def __init__(self, manager: AbstractAsyncContextManager[Any], before: _Life | None) -> None:
        self.users = 0
        self._ready = asyncio.Event()
        self._over = asyncio.Event()
        self._task = asyncio.create_task(self._live(manager, before))

    async def _live(self, manager: AbstractAsyncContextManager[Any], before: _Life | None) -> None:
        # The handlers may still be leaving; they cannot be entered twice.
        if before is not None and not before._task.done():
            await asyncio.wait([before._task])
        try:
            async with manager:
                self._ready.set()
                await self._over.wait()
        except SystemExit as end:  # asyncio would leave its loop immediately, whatever else runs
            raise RuntimeError(f"they called sys.exit({end.code!r})").with_traceback(end.__traceback__) from None

    async def wait_until_started(self) -> None:
        """Wait until the manager is entered; raises what that raises."""
        ready = asyncio.create_task(self._ready.wait())
        try:
            await asyncio.wait([ready, self._task], return_when=asyncio.FIRST_COMPLETED)
        finally:
            ready.cancel()
        if self._task.done():
            self._task.result()

    async def end(self) -> None:
        """Leave the manager, and raise its exception, if any. If it is not entered yet, entering is cancelled."""
        self._over.set()
        if not self._ready.is_set():
            self._task.cancel()
        warning = asyncio.get_running_loop().call_later(_SLOW, _warn_of_slow_end)
        try:
            await asyncio.wait([self._task])
        finally:
            warning.cancel()
        if self._ready.is_set():
            self._task.result()


def _warn_of_slow_end() -> None:
    log().warning("the handlers have not ended after %g seconds; still waiting for their __aexit__", _SLOW)
