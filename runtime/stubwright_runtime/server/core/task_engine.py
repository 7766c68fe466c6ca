"""The interface of task engines, which pass the ids of tasks to the processes that run them.

The records, leases and results of tasks are in the store; an engine needs only ids.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias

TaskWork: TypeAlias = Callable[[str], Coroutine[Any, Any, bool]]
"""Runs the task with an id, and returns at the end of its run.

True means that the engine is done with the id. False means that the task runs in another process, or that this process
is stopping; the engine then passes the id to a process again after a few seconds. An exception means the same: the
store is unavailable. The function may be called at any time, and several times for one task; the task's lease decides
which call runs it.
"""


class TaskEngine(Protocol):
    """Passes the ids of tasks to the processes of one server.

    Its methods are called on the server's event loop.
    """

    async def submit(self, task: str) -> None:
        """Enqueue the id of a task durably, for the next free process.

        Called during `run`. If it raises an exception, the caller of the tool gets an error.
        """
        ...

    def run(self, work: TaskWork | None, grace: float) -> AbstractAsyncContextManager[None]:
        """Return a context manager during which tasks are submitted and run. It may be entered again.

        An id remains in the queue until `work` has returned True for it; if the process dies first, another process
        gets the id.

        Args:
            work: The function to call with each id; `None` in a process that only submits tasks.
            grace: The seconds after the block until running tasks are cancelled.
        """
        ...

    def stop(self) -> None:
        """Stop starting tasks, because the block is about to end. Running tasks continue."""
        ...
