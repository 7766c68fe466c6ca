"""The way from a task's handler to its client, who has its answer already and may be gone."""

from __future__ import annotations

import json
import logging
from typing import TYPE_CHECKING, Any, Final, NoReturn

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ..mcp.vocabulary import LogLevel
    from .connections import TaskConnections
    from .records import Task

_LEVELS: Final[Mapping[LogLevel, int]] = {
    "debug": logging.DEBUG,
    "info": logging.INFO,
    "notice": logging.INFO,
    "warning": logging.WARNING,
    "error": logging.ERROR,
    "critical": logging.CRITICAL,
    "alert": logging.CRITICAL,
    "emergency": logging.CRITICAL,
}

_MAX_CHARACTERS: Final = 500
"""Characters of a task's message."""


class TaskChannel:
    """The way to the client of one task."""

    def __init__(
        self,
        task: Task,
        connections: TaskConnections,
        log: logging.Logger,
        save_message: Callable[[str], Awaitable[None]],
    ) -> None:
        """Take the open connections, the server's log, and a function that saves the task's message."""
        self._task = task
        self._connections = connections
        self._log = log
        self._save_message = save_message

    @property
    def capabilities(self) -> Mapping[str, Any] | None:
        """The client's capabilities when it called."""
        return self._task.capabilities

    @property
    def client(self) -> tuple[str, str] | None:
        """The name and the version that the client reported when it called."""
        return self._task.client

    async def send_progress(self, done: float, total: float | None, message: str | None) -> None:
        """Store the message of the task, and notify its clients."""
        await self._save_message(_describe_progress(done, total, message))
        await self._connections.send_progress(self._task.id, done, total, message)

    async def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        """Send it, or write it to the server's log if there is no connection."""
        if not await self._connections.log(self._task.id, level, data, logger):
            text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
            self._log.log(_LEVELS[level], "%s: %s", logger or self._task.tool, text)

    async def subscribe(self, uri: str) -> None:
        """Do nothing: no task subscribes."""

    async def release(self) -> None:
        """Do nothing: no stream waits."""

    async def request(self, method: str, _params: Mapping[str, Any] | None, /) -> NoReturn:
        """Raise RuntimeError: questions of tasks are not requests, since its rounds keep them."""
        raise RuntimeError(f"a task cannot send {method}")

    async def record_visit(self, elicitation: str) -> None:
        """Do nothing: a client that is notified of the task gets its questions."""

    async def notify_visited(self, elicitation: str) -> bool:
        """Notify that all is done at a URL, if there is a connection."""
        return await self._connections.notify_visited(self._task.id, elicitation)


def _describe_progress(done: float, total: float | None, message: str | None) -> str:
    """Describe progress in words: `3 of 10: packing`."""
    progress = f"{done:g}" if total is None else f"{done:g} of {total:g}"
    return (progress if message is None else f"{progress}: {message}")[:_MAX_CHARACTERS]
