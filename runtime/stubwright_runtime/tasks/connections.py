"""Client connections for running tasks (MCP 2025-11-25 and earlier). Clients may miss notifications."""

from __future__ import annotations

from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, Protocol

import anyio

from ..server.protocol.sender import make_log_message, make_progress
from ..state.store import StateLost
from . import wire

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from anyio.abc import TaskGroup

    from ..mcp.vocabulary import LogLevel
    from .records import Task
    from .store import TaskStore


class TaskConnection(Protocol):
    """The connection to a client that started a task."""

    @property
    def session(self) -> str | None:
        """The HTTP session ID (MCP 2025-11-25 and earlier)."""
        ...

    @property
    def capabilities(self) -> Mapping[str, Any] | None:
        """The client's capabilities."""
        ...

    @property
    def client(self) -> tuple[str, str] | None:
        """The client's name and version."""
        ...

    @property
    def token(self) -> str | int | None:
        """The call's progress token, or `None`."""
        ...

    @property
    def is_resumable(self) -> bool:
        """True if the client can resume its request's stream."""
        ...

    def wants(self, level: LogLevel) -> bool:
        """Return whether the client requested messages at this level."""
        ...

    async def request(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Send a request on the call's stream. Raises ProtocolError."""
        ...

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification on the call's stream."""
        ...

    async def notify_connection(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification on the connection, even if the stream has ended."""
        ...


class TaskConnections:
    """The connections of clients that started tasks, keyed by task ID."""

    def __init__(self, task_store: TaskStore) -> None:
        self._task_store = task_store
        self._connections: dict[str, TaskConnection] = {}
        self._group: TaskGroup | None = None

    def open(self, task: Task, connection: TaskConnection) -> None:
        """Store a task's connection, and notify its client of each change."""
        if self._group is not None:
            self._connections[task.id] = connection
            # Drop arguments and answers, because the request stays in memory until the task ends.
            self._group.start_soon(self._follow, task.end(), connection)

    async def send_progress(self, task: str, done: float, total: float | None, message: str | None) -> None:
        """Send a progress notification."""
        connection = self._connections.get(task)
        if connection is not None and connection.token is not None:
            params = make_progress(connection.token, done, total, message)
            await connection.notify_connection("notifications/progress", {**params, "_meta": wire.relate(task)})

    async def log(self, task: str, level: LogLevel, data: Any, name: str | None) -> bool:
        """Send a log message and return whether the client is connected."""
        connection = self._connections.get(task)
        if connection is None:
            return False
        if connection.wants(level):
            params = {**make_log_message(level, data, name), "_meta": wire.relate(task)}
            await connection.notify_connection("notifications/message", params)
        return True

    async def complete_elicitation(self, task: str, elicitation: str) -> bool:
        """Send a notification that a URL elicitation is complete, and return whether the client is connected."""
        connection = self._connections.get(task)
        if connection is None:
            return False
        params = {"elicitationId": elicitation, "_meta": wire.relate(task)}
        await connection.notify_connection("notifications/elicitation/complete", params)
        return True

    @asynccontextmanager
    async def run(self) -> AsyncGenerator[None, None]:
        """Notify clients of their tasks' changes during the block."""
        async with anyio.create_task_group() as group:
            self._group = group
            try:
                yield
            finally:
                self._group = None
                self._connections.clear()
                group.cancel_scope.cancel()

    async def _follow(self, task: Task, connection: TaskConnection) -> None:
        status, expiry = wire.to_handshake_task(task)["status"], task.created + task.ttl
        with self._task_store.watch([task.id]) as changed:
            while (seconds_left := expiry - self._task_store.now()) > 0:
                with anyio.move_on_after(seconds_left):
                    await changed.wait()
                changed.clear()
                try:
                    current = await self._task_store.find(task.id)
                except StateLost:
                    continue  # after an outage, the task store wakes every waiter
                if current is None:
                    break
                status_params = wire.to_handshake_task(current)
                if status_params["status"] != status:
                    status = status_params["status"]
                    await connection.notify_connection("notifications/tasks/status", status_params)
                if current.is_terminal:
                    break
        self._connections.pop(task.id, None)
