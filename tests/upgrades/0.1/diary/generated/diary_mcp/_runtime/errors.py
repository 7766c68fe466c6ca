# Part of stubwright's runtime, copied as it is. DO NOT EDIT.
"""What a handler raises so that its caller learns why.

Takes and gives plain values; imports nothing.
"""

from __future__ import annotations

from typing import Final

_MARK: Final = "_stubwright_tool_error"


class ToolError(Exception):
    """Raised by a handler when the caller should know why.

    The text goes to the caller as it is, in a result with `isError: true`, so that a model can fix its call
    (MCP 2025-11-25, server/tools, "Error Handling"). It should say what to do differently, and hold no secret.
    """

    _stubwright_tool_error = True

    def __init__(self, message: str) -> None:
        """Say why.

        Args:
            message: What the caller reads.
        """
        super().__init__(message)
        self.message = message


def is_tool_error(error: BaseException) -> bool:
    """Whether `error` is a `ToolError`, of this package or of any other generated one in the process.

    Each generated package has a `ToolError` class of its own. A handler that two servers share may raise either's,
    so the class is known by a marker instead of by identity.
    """
    return getattr(type(error), _MARK, False) is True
