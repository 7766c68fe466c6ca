"""The interface of task engines, which pass task IDs to the processes that run the tasks.

The store contains the tasks' records, leases and results; an engine only needs task IDs.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias

TaskWork: TypeAlias = Callable[[str], Coroutine[Any, Any, bool]]
"""Runs the task with an ID, and returns when the run finishes.

True means that the engine can forget the ID. False means that the task runs in another process or that this process is
stopping; the engine then passes the ID to a process again after a few seconds. The engine does the same after an
exception, which means that the store is unavailable. An engine can call the function at any time, and several times for
one task; the task's lease decides which call runs it.
"""


class TaskEngine(Protocol):
    """Passes task IDs to the processes of one server.

    All methods are called on the server's event loop.
    """

    async def submit(self, task: str) -> None:
        """Enqueue a task ID durably for the next idle process.

        Called while `run`'s context is active. If this raises, the tool's caller receives an error.
        """
        ...

    def run(self, work: TaskWork | None, grace: float) -> AbstractAsyncContextManager[None]:
        """Return a context manager during which tasks can be submitted and run. A server can enter it more than
        once.

        An ID stays in the queue until `work` returns True for it. If the process dies first, another process receives
        the ID.

        Args:
            work: Called with each task ID; `None` in a process that only submits tasks.
            grace: Seconds after the end of the block before running tasks are cancelled.
        """
        ...

    def stop(self) -> None:
        """Start no more tasks, because the context is about to exit. Running tasks continue."""
        ...
