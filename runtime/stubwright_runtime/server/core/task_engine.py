"""The interface for task engines, which pass task IDs to the processes that run the tasks.

The store contains the tasks' records, leases and results; an engine needs only their IDs.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias

TaskWork: TypeAlias = Callable[[str], Coroutine[Any, Any, bool]]
"""Runs the task with an ID and returns when the run finishes.

True means that the engine can forget the ID. False means that the task runs in another process or that this process is
stopping; the engine then passes the ID to a process again after a few seconds. An exception means that the store is
unavailable; the engine does the same. The function may be called at any time, and several times for one task; the
task's lease decides which call runs it.
"""


class TaskEngine(Protocol):
    """Passes task IDs to the processes of one server.

    Its methods are called on the server's event loop.
    """

    async def submit(self, task: str) -> None:
        """Enqueue a task ID durably for the next free process.

        Called during `run`. If it raises an exception, the tool's caller receives an error.
        """
        ...

    def run(self, work: TaskWork | None, grace: float) -> AbstractAsyncContextManager[None]:
        """Return a context manager during which tasks are submitted and run. It may be entered again.

        An ID remains in the queue until `work` returns True for it; if the process dies first, another process receives
        the ID.

        Args:
            work: The function to call with each ID; `None` in a process that only submits tasks.
            grace: Seconds after the block until running tasks are cancelled.
        """
        ...

    def stop(self) -> None:
        """Stop starting tasks, because the context is about to exit. Running tasks continue."""
        ...
