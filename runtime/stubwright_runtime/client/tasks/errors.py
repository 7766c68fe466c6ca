"""Exceptions for tasks, in addition to those for calls.

Exception
├── TaskCancelled     the task was cancelled before it had a result
├── TaskExpired       the task is unknown to the server or has expired
└── TasksUnsupported  the server or its revision does not support the operation
"""

from __future__ import annotations

from ...values.terminal import replace_controls


class TaskCancelled(Exception):
    """The task was cancelled, possibly by another client, before it had a result.

    Attributes:
        tool: The tool's wire name.
        task: The task's ID.
    """

    __stubwright_outcome__ = "cancelled"

    def __init__(self, tool: str, task: str, message: str | None) -> None:
        super().__init__(
            replace_controls(f"the task of {tool!r} was cancelled{'' if message is None else f': {message}'}")
        )
        self.tool = tool
        self.task = task


class TaskExpired(Exception):
    """The task is unknown to the server: it is past its `ttl`, belongs to another caller, or never existed.

    Attributes:
        tool: The tool's wire name.
        task: The task's ID.
    """

    def __init__(self, tool: str, task: str, message: str) -> None:
        super().__init__(replace_controls(f"the task of {tool!r} is unknown to the server, or has expired: {message}"))
        self.tool = tool
        self.task = task


class TasksUnsupported(Exception):
    """The server or its protocol revision does not support the operation. The message suggests an alternative."""

    def __init__(self, message: str) -> None:
        super().__init__(replace_controls(message))
