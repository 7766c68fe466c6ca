"""The resources that one call takes up while it runs: time, a place among concurrent calls, and threads.

Takes limits, if the call has any; without them, it takes up threads only. A handler that waits for a person says so,
and so does a thread that cannot be stopped.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from .threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable


class CallLimits(Protocol):
    """The limits of one call."""

    def rest(self) -> AbstractAsyncContextManager[None]:
        """Wait for a person during the block: the clock stops, and the place is free."""
        ...

    def hold(self) -> Callable[[], None]:
        """Keep the place until the returned function is called, which any thread may do."""
        ...


class Slot:
    """The resources that one call takes up.

    Attributes:
        limits: The limits of the call, if there are any.
        method: The method of the handlers that runs.
    """

    def __init__(self, threads: Threads | None = None, patience: float | None = None) -> None:
        """Begin with nothing taken up.

        Args:
            threads: The pool of threads for plain `def` methods.
            patience: Seconds that the call may wait for a thread; by default those of the pool.
        """
        self.limits: CallLimits | None = None
        self.method = ""
        self._threads = threads or Threads()
        self._patience = patience

    def rest(self) -> AbstractAsyncContextManager[None]:
        """Wait for a person during the block."""
        return nullcontext() if self.limits is None else self.limits.rest()

    async def run_in_thread(self, function: Callable[[], Any]) -> Any:
        """Run a function in a thread, which keeps the place until it ends. Raises NoFreeThreadError."""
        hold = None if self.limits is None else self.limits.hold
        return await self._threads.run(self.method, function, patience=self._patience, hold=hold)
