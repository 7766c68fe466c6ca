"""The thread pool for plain `def` handlers, with a maximum in total and per method.

A thread cannot be stopped, so it counts until its function returns, even if the call was cancelled.
"""

from __future__ import annotations

import asyncio
import math
import threading
from collections import Counter, deque
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from anyio import CapacityLimiter

THREADS: Final = 64
"""The default number of threads per server."""

_PATIENCE: Final = 5.0

_IS_WITHIN: Final[ContextVar[bool]] = ContextVar("is_within", default=False)
"""True in code that a pool thread runs or waits for. Such code must not wait for a thread, because that could
deadlock.
"""


class NoFreeThreadError(Exception):
    """No thread became free in time. The message is suitable for the caller."""


@dataclass(frozen=True, slots=True, eq=False)
class _ThreadWaiter:
    name: str
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class Threads:
    """The thread pool of one server. Each method can use at most half of the threads, so that others can continue.

    Attributes:
        patience: Seconds that a call waits for a thread before it is refused.
    """

    def __init__(self, most: int = THREADS) -> None:
        """Create a pool of at most `most` threads. Raises ValueError if `most` is not positive."""
        if most < 1:
            raise ValueError(f"threads must be positive, not {most}")
        self.patience = _PATIENCE
        self._most = most
        self._share = max(1, most // 2)
        self._taken: Counter[str] = Counter()
        self._waiting: deque[_ThreadWaiter] = deque()
        self._limiter: CapacityLimiter | None = None  # anyio's default limiter is shared by the whole process

    async def run(
        self,
        name: str,
        function: Callable[[], Any],
        *,
        patience: float | None = None,
        hold: Callable[[], Callable[[], None]] | None = None,
    ) -> Any:
        """Run a function in a thread and return its result. If the calling task is cancelled, the thread continues.

        Args:
            name: The handler method's name, for the maximum per method.
            function: Called without arguments.
            patience: The maximum time to wait for a thread, in seconds; by default the pool's `patience`.
            hold: Called before the thread starts. It returns a callback that is called, from any thread, when
                `function` returns.

        Raises:
            NoFreeThreadError: No thread became free in time.
        """
        if _IS_WITHIN.get():
            self._taken[name] += 1
        else:
            await self._enter(name, self.patience if patience is None else patience)
        import anyio
        import anyio.to_thread

        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(math.inf)
        release = None if hold is None else hold()
        loop = asyncio.get_running_loop()

        def finish() -> None:
            if release is not None:
                release()
            try:
                loop.call_soon_threadsafe(self._leave, name)
            except RuntimeError:  # the loop is closed, so no calls are waiting
                self._taken[name] -= 1

        # Whoever acquires the lock first wins: the thread runs the function, or the cancelled caller prevents that.
        started = threading.Lock()
        try:
            value, error = await anyio.to_thread.run_sync(
                _run_in_thread, function, finish, started, abandon_on_cancel=True, limiter=self._limiter
            )
        except BaseException:
            if started.acquire(blocking=False):  # the function has not started, and now never will
                finish()
            raise
        try:
            if error is not None:
                raise error
        finally:
            error = None  # the traceback refers to this frame: a reference cycle
        return value

    async def _enter(self, name: str, patience: float) -> None:
        """Acquire a slot. Waiting calls are served in order of arrival."""
        if self._is_free(name):
            self._taken[name] += 1
            return
        waiting = _ThreadWaiter(name)
        self._waiting.append(waiting)
        try:
            async with asyncio.timeout(patience):
                await waiting.woken.wait()
        except TimeoutError:
            pass
        except BaseException:
            if waiting.woken.is_set():
                self._leave(name)  # `_leave` has already assigned a slot
            else:
                self._waiting.remove(waiting)
            raise
        if waiting.woken.is_set():
            return
        self._waiting.remove(waiting)
        whose = "the server" if self._taken.total() >= self._most else name
        count = self._most if whose == "the server" else self._share
        number = "The only thread" if count == 1 else f"All {count:,} threads"
        are = "is" if count == 1 else "are"
        raise NoFreeThreadError(f"{number} of {whose} {are} busy; try again in a few seconds.")

    def _leave(self, name: str) -> None:
        """Free a slot, or pass it to the first waiting call whose method is below its maximum."""
        self._taken[name] -= 1
        if not self._taken[name]:
            del self._taken[name]
        for waiting in self._waiting:
            if self._is_free(waiting.name):
                self._waiting.remove(waiting)
                self._taken[waiting.name] += 1
                waiting.woken.set()
                return

    def _is_free(self, name: str) -> bool:
        return self._taken.total() < self._most and self._taken[name] < self._share


def _run_in_thread(
    function: Callable[[], Any], finish: Callable[[], None], started: threading.Lock
) -> tuple[Any, BaseException | None]:
    """Return a function's result and exception.

    Some exceptions, such as StopIteration, cannot be raised in a coroutine.
    """
    if not started.acquire(blocking=False):
        return None, None
    _IS_WITHIN.set(True)
    try:
        return function(), None
    except BaseException as error:  # noqa: BLE001 - raised again in the coroutine
        return None, error
    finally:
        finish()
