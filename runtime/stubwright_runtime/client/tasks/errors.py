"""Exceptions of tasks, in addition to the exceptions of calls.

Exception
├── TaskCancelled     the task was cancelled before it had a result
├── TaskExpired       the server does not know the task (any more)
└── TasksUnsupported  the server or its revision does not support the operation
"""

from __future__ import annotations

from ...values.terminal import replace_controls


class TaskCancelled(Exception):
    """The task was cancelled, possibly by another client, before it had a result.

    Attributes:
        tool: The tool's name on the wire.
        task: The task's id.
    """

    __stubwright_outcome__ = "cancelled"

    def __init__(self, tool: str, task: str, message: str | None) -> None:
        """Show the tool and the server's message."""
        super().__init__(
            replace_controls(f"the task of {tool!r} was cancelled{'' if message is None else f': {message}'}")
        )
        self.tool = tool
        self.task = task


class TaskExpired(Exception):
    """The server does not know the task: it is past its `ttl`, belongs to another caller, or never existed.

    Attributes:
        tool: The tool's name on the wire.
        task: The task's id.
    """

    def __init__(self, tool: str, task: str, message: str) -> None:
        """Show the tool and the server's message."""
        super().__init__(replace_controls(f"the server does not know the task of {tool!r} (any more): {message}"))
        self.tool = tool
        self.task = task


class TasksUnsupported(Exception):
    """The server or its revision does not support the operation. The message names an alternative."""

    def __init__(self, message: str) -> None:
        """Show the problem and an alternative."""
        super().__init__(replace_controls(message))
