"""What one call takes up while it runs: its time, its place among the calls that may run at once, and its threads.

Takes a keeper, where a limit holds for the call; without one, only threads are taken up. Whoever waits for a person
says so, and so does a thread that nobody can stop.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Any, Protocol

from .threads import Threads

if TYPE_CHECKING:
    from collections.abc import Callable


class CallLimits(Protocol):
    """What keeps the limits of one call."""

    def resting(self) -> AbstractAsyncContextManager[None]:
        """Wait for a person during the block: neither does the clock run, nor is the place taken."""
        ...

    def hold(self) -> Callable[[], None]:
        """Keep the place until what this gives is called, which any thread may do."""
        ...


class Slot:
    """What one call takes up.

    Attributes:
        keeper: Keeps the limits of the call, where there are any.
        method: The method of the handlers that runs.
    """

    def __init__(self, threads: Threads | None = None, patience: float | None = None) -> None:
        """Begin with nothing taken up.

        Args:
            threads: Where plain `def` methods run.
            patience: Seconds that the call may wait for one of these, where those are not the usual ones.
        """
        self.limits: CallLimits | None = None
        self.method = ""
        self._threads = threads or Threads()
        self._patience = patience

    def resting(self) -> AbstractAsyncContextManager[None]:
        """Wait for a person during the block."""
        return nullcontext() if self.limits is None else self.limits.resting()

    async def in_thread(self, function: Callable[[], Any]) -> Any:
        """Run a function in a thread, which keeps the place until it ends. Raises NoFreeThreadError."""
        hold = None if self.limits is None else self.limits.hold
        return await self._threads.run(self.method, function, patience=self._patience, hold=hold)
