"""The protocol of task engines, which pass the ids of tasks to the processes that run them.

The records of tasks, their leases and their results are in the store; an engine needs only ids.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import AbstractAsyncContextManager
from typing import Any, Protocol, TypeAlias

TaskWork: TypeAlias = Callable[[str], Coroutine[Any, Any, bool]]
"""A function that runs the task with an id, and returns when its run has ended.

After True, the engine is done with the id. After False, the task runs in another process, or this one is about to stop,
and the engine passes the id to a process again in a few seconds. It does the same after an exception: the store cannot
be reached. The function may be called at any time, and several times for one task; the lease on the task decides which
of these calls runs it.
"""


class TaskEngine(Protocol):
    """An engine that passes the ids of tasks to the processes of one server.

    Its methods are called in the server's event loop.
    """

    async def submit(self, task: str) -> None:
        """Take the id of a task, durably, for the next free process.

        It is called during `run`. If it raises an exception, the caller of the tool gets an error.
        """
        ...

    def run(self, work: TaskWork | None, grace: float) -> AbstractAsyncContextManager[None]:
        """Return a context manager during which tasks are submitted and run. It may be entered again.

        An id stays in the queue until `work` has returned True for it: if the process dies first, another process gets
        it.

        Args:
            work: The function to call with each id; `None` in a process that only submits tasks.
            grace: The seconds that running tasks have to end after the block; then they are cancelled.
        """
        ...

    def stop(self) -> None:
        """Begin no more tasks, since the block is about to end. Running tasks continue."""
        ...
