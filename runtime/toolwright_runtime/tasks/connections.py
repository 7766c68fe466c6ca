"""The connections of 2025-11-25 that tasks were made on, as long as these go on.

Takes a task and the way to its client; tells that of progress, of messages, and of each new status (MCP 2025-11-25,
basic/utilities/tasks, "Task Notifications" and "Task Progress Notifications"). Whether anybody hears it, nobody knows.
"""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

import anyio
import mcp_types as types

from ..state.store import StateLost
from . import wire

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from anyio.abc import TaskGroup

    from ..server.core.context import LogLevel
    from .records import Task
    from .store import Ledger


class Line(Protocol):
    """The way to a client that has asked for a call."""

    @property
    def session(self) -> str | None:
        """The id of its session over HTTP, up to 2025-11-25."""
        ...

    @property
    def capabilities(self) -> types.ClientCapabilities | None:
        """What it declared that it can do."""
        ...

    @property
    def client(self) -> tuple[str, str] | None:
        """The name and the version that it says it has."""
        ...

    @property
    def token(self) -> str | int | None:
        """What progress of the call is told with, where it wants to hear of it."""
        ...

    def wants(self, level: LogLevel) -> bool:
        """Whether it wants messages of this level."""
        ...

    async def tell(self, notification: types.Notification[Any, Any]) -> None:
        """Tell it something on its connection, whatever became of the request."""
        ...


class Lines:
    """All of them, by the ids of tasks."""

    def __init__(self, ledger: Ledger) -> None:
        """Take where tasks change."""
        self._ledger = ledger
        self._lines: dict[str, Line] = {}
        self._group: TaskGroup | None = None

    def open(self, task: Task, line: Line) -> None:
        """Tell a client of a task from now on."""
        if self._group is not None:
            self._lines[task.id] = line
            self._group.start_soon(self._follow, task.ended(), line)

    async def progress(self, task: str, done: float, total: float | None, message: str | None) -> None:
        """Tell of progress."""
        line = self._lines.get(task)
        if line is not None and line.token is not None:
            params = types.ProgressNotificationParams(
                progress_token=line.token, progress=done, total=total, message=message, _meta=wire.related(task)
            )
            await line.tell(types.ProgressNotification(params=params))

    async def log(self, task: str, level: LogLevel, data: Any, name: str | None) -> bool:
        """Tell a message; whether there is a client to tell."""
        line = self._lines.get(task)
        if line is None:
            return False
        if line.wants(level):
            params = types.LoggingMessageNotificationParams(
                level=level, data=data, logger=name, _meta=wire.related(task)
            )
            await line.tell(types.LoggingMessageNotification(params=params))
        return True

    async def visited(self, task: str, elicitation: str) -> bool:
        """Tell that all is done at the URL of a question; whether there is a client to tell."""
        line = self._lines.get(task)
        if line is None:
            return False
        params = types.ElicitCompleteNotificationParams(elicitation_id=elicitation, _meta=wire.related(task))
        await line.tell(types.ElicitCompleteNotification(params=params))
        return True

    @asynccontextmanager
    async def running(self) -> AsyncGenerator[None, None]:
        """The length of a stay in which clients are told."""
        async with anyio.create_task_group() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                self._lines.clear()
                group.cancel_scope.cancel()

    async def _follow(self, task: Task, line: Line) -> None:
        status, end = wire.in_handshake_era(task)["status"], task.created + task.ttl
        with self._ledger.watching([task.id]) as woken:
            while (left := end - self._ledger.now()) > 0:
                with anyio.move_on_after(left):
                    await woken.wait()
                woken.clear()
                try:
                    found = await self._ledger.find(task.id)
                except StateLost:
                    continue  # the ledger wakes all who wait when the store is there again
                if found is None:
                    break
                said = wire.in_handshake_era(found)
                if said["status"] != status:
                    status = said["status"]
                    await line.tell(types.TaskStatusNotification(params=types.TaskStatusNotificationParams(**said)))
                if found.is_over:
                    break
        self._lines.pop(task.id, None)
