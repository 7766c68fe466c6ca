"""The in-memory task engine. Its tasks are lost when the process exits."""

from __future__ import annotations

import contextvars
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Final

import anyio

from ...observability.logs import log
from ...state.store import StateLost

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anyio.abc import TaskGroup

    from ...server.core.task_engine import TaskWork

_RETRY_INTERVAL: Final = 0.02
"""Seconds before retrying a task whose last run is still finishing."""


class MemoryEngine:
    """Runs tasks in this process."""

    def __init__(self) -> None:
        """Create an engine without tasks."""
        self._group: TaskGroup | None = None
        self._work: TaskWork | None = None
        self._context = contextvars.Context()

    def stop(self) -> None:
        """Implement `TaskEngine.stop`; no other process can run the tasks."""

    async def submit(self, task: str) -> None:
        """Implement `TaskEngine.submit`."""
        if self._group is None or self._work is None:
            raise StateLost("tasks are not running here")
        start = self._group.start_soon
        self._context.run(start, _work_at, self._work, task)  # outside the current request's context

    @asynccontextmanager
    async def run(self, work: TaskWork | None, grace: float) -> AsyncGenerator[None, None]:
        """Implement `TaskEngine.run`."""
        self._work, self._context = work, contextvars.copy_context()
        async with anyio.create_task_group() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                group.cancel_scope.cancel()


async def _work_at(work: TaskWork, task: str) -> None:
    try:
        # A client may answer before the run that asked has finished.
        while True:
            if await work(task):
                return
            await anyio.sleep(_RETRY_INTERVAL)
    except Exception:  # noqa: BLE001 - other tasks continue
        log().exception("a task could not be run")
