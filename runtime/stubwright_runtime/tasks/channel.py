"""The channel from a task's handler to its client, which may have disconnected."""

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
"""The maximum length of a task's message, in characters."""


class TaskChannel:
    """The channel from one task's handler to the client."""

    def __init__(
        self,
        task: Task,
        connections: TaskConnections,
        log: logging.Logger,
        save_message: Callable[[str], Awaitable[None]],
    ) -> None:
        self._task = task
        self._connections = connections
        self._log = log
        self._save_message = save_message

    @property
    def capabilities(self) -> Mapping[str, Any] | None:
        """The client's capabilities at the time of the call."""
        return self._task.capabilities

    @property
    def client(self) -> tuple[str, str] | None:
        """The client's name and version at the time of the call."""
        return self._task.client

    async def send_progress(self, done: float, total: float | None, message: str | None) -> None:
        """Store progress as the task's message, and notify the task's clients."""
        await self._save_message(_describe_progress(done, total, message))
        await self._connections.send_progress(self._task.id, done, total, message)

    async def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        """Send a log message to the client, or write it to the server's log if the client is disconnected."""
        if not await self._connections.log(self._task.id, level, data, logger):
            text = data if isinstance(data, str) else json.dumps(data, ensure_ascii=False)
            self._log.log(_LEVELS[level], "%s: %s", logger or self._task.tool, text)

    async def subscribe(self, uri: str) -> None:
        """Do nothing, because tasks cannot subscribe."""

    async def release(self) -> None:
        """Do nothing, because tasks have no stream."""

    async def request(self, method: str, _params: Mapping[str, Any] | None, /) -> NoReturn:
        """Raise RuntimeError, because tasks store their questions instead of sending requests."""
        raise RuntimeError(f"a task cannot send {method}")

    async def record_elicitation(self, elicitation: str) -> None:
        """Do nothing, because clients get the questions with the task's state."""

    async def complete_elicitation(self, elicitation: str) -> bool:
        """Notify the client, if connected, that a URL elicitation is complete. Return whether it is connected."""
        return await self._connections.complete_elicitation(self._task.id, elicitation)


def _describe_progress(done: float, total: float | None, message: str | None) -> str:
    """Format progress, such as `3 of 10: packing`."""
    progress = f"{done:g}" if total is None else f"{done:g} of {total:g}"
    return (progress if message is None else f"{progress}: {message}")[:_MAX_CHARACTERS]
