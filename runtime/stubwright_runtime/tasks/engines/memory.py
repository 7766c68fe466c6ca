"""The in-memory task engine. Its tasks are lost when the process exits."""

from __future__ import annotations

import asyncio
import contextvars
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

from ...observability.logs import log
from ...server.execution.cancellation import shield
from ...server.execution.event_loop import end_tasks
from ...state.store import StateLost

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from ...server.core.task_engine import TaskWork

_RETRY_INTERVAL: Final = 0.02
"""Seconds before retrying a task whose last run is still finishing."""


class MemoryEngine:
    """Runs tasks in this process."""

    def __init__(self) -> None:
        """Create an engine without tasks."""
        self._running: set[asyncio.Task[None]] | None = None
        self._work: TaskWork | None = None
        self._context = contextvars.Context()

    def stop(self) -> None:
        """Implement `TaskEngine.stop`; no other process can run the tasks."""

    async def submit(self, task: str) -> None:
        """Implement `TaskEngine.submit`."""
        if self._running is None or self._work is None:
            raise StateLost("tasks are not running here")
        # Outside the current request's context.
        working = self._context.run(asyncio.create_task, _work_at(self._work, task))
        self._running.add(working)
        working.add_done_callback(self._running.discard)

    @asynccontextmanager
    async def run(self, work: TaskWork | None, grace: float) -> AsyncGenerator[None, None]:
        """Implement `TaskEngine.run`."""
        self._work, self._context = work, contextvars.copy_context()
        running = self._running = set()
        try:
            yield
        finally:
            self._running = None
            with shield():
                if await end_tasks(running):
                    log().warning("abandoning a task that did not finish after being cancelled")


async def _work_at(work: TaskWork, task: str) -> None:
    try:
        # A client may answer before the run that asked has finished.
        while True:
            if await work(task):
                return
            await asyncio.sleep(_RETRY_INTERVAL)
    except Exception:  # noqa: BLE001 - other tasks continue
        log().exception("a task could not be run")
