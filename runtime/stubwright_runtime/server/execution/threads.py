"""The threads that plain `def` methods of the handlers run in, limited in all and for each method.

A thread cannot be stopped, so it counts until it ends, even if its call was abandoned. The server's own work uses other
threads.
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
"""The default number of threads of one server."""

_PATIENCE: Final = 5.0

_IS_WITHIN: Final[ContextVar[bool]] = ContextVar("is_within", default=False)
"""True if a function in a thread waits for this code, which then must not wait for a thread that only its end frees."""


class NoFreeThreadError(Exception):
    """No thread was free in time; the text is for the caller."""


@dataclass(frozen=True, slots=True, eq=False)
class _ThreadWaiter:
    """A method that waits for a thread, and the event that wakes it."""

    name: str
    woken: asyncio.Event = field(default_factory=asyncio.Event)


class Threads:
    """The threads of one server. No method takes more than half of them, so that the others can go on.

    Attributes:
        patience: Seconds that a call waits for a thread before it is refused.
    """

    def __init__(self, most: int = THREADS) -> None:
        """Take the maximum number. Raises ValueError if it is not positive."""
        if most < 1:
            raise ValueError(f"threads is {most}; it must be positive")
        self.patience = _PATIENCE
        self._most = most
        self._share = max(1, most // 2)
        self._taken: Counter[str] = Counter()
        self._waiting: deque[_ThreadWaiter] = deque()
        self._limiter: CapacityLimiter | None = None  # anyio's own is shared with everything else in the process

    async def run(
        self,
        name: str,
        function: Callable[[], Any],
        *,
        patience: float | None = None,
        hold: Callable[[], Callable[[], None]] | None = None,
    ) -> Any:
        """Run a function in a thread, and return its result. If the caller is cancelled, the thread continues.

        Args:
            name: The method of the handlers that it belongs to.
            function: The function.
            patience: Seconds that it may wait for a thread; by default the pool's.
            hold: Is called first; returns a function to call when the thread ends, in any thread.

        Raises:
            NoFreeThreadError: There was no thread in time.
        """
        if _IS_WITHIN.get():
            self._taken[name] += 1
        else:
            await self._enter(name, self.patience if patience is None else patience)
        import anyio
        import anyio.to_thread

        if self._limiter is None:
            self._limiter = anyio.CapacityLimiter(math.inf)
        let_go = None if hold is None else hold()
        loop = asyncio.get_running_loop()

        def finish() -> None:
            if let_go is not None:
                let_go()
            try:
                loop.call_soon_threadsafe(self._leave, name)
            except RuntimeError:  # the loop is closed: no call waits any more
                self._taken[name] -= 1

        # Whoever acquires the lock first decides: the thread runs the function, or the caller abandons it.
        started = threading.Lock()
        try:
            value, error = await anyio.to_thread.run_sync(
                _run_in_thread, function, finish, started, abandon_on_cancel=True, limiter=self._limiter
            )
        except BaseException:
            if started.acquire(blocking=False):  # it has not begun, and must not run any more
                finish()
            raise
        try:
            if error is not None:
                raise error
        finally:
            error = None  # its traceback holds this frame, and with it the arguments
        return value

    async def _enter(self, name: str, patience: float) -> None:
        """Acquire a slot; waiting calls are served in order of arrival."""
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
                self._leave(name)  # it was handed over meanwhile
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
        raise NoFreeThreadError(f"{number} of {whose} {are} busy. Nothing was done; try again in a few seconds.")

    def _leave(self, name: str) -> None:
        """Free a place, and hand it over to the first waiting method that may have it."""
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
    """Return the result and the exception of a function: some exceptions cannot be thrown into a coroutine."""
    if not started.acquire(blocking=False):
        return None, None
    _IS_WITHIN.set(True)
    try:
        return function(), None
    except BaseException as error:  # noqa: BLE001 - it is raised again, in the coroutine
        return None, error
    finally:
        finish()
