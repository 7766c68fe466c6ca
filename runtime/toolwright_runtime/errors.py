"""What a handler raises so that its caller learns why.

Takes and gives plain values; imports nothing.
"""

from __future__ import annotations


class ToolError(Exception):
    """Raised by a handler when the caller should know why.

    The text goes to the caller as it is, in a result with `isError: true`, so that a model can fix its call
    (MCP 2025-11-25, server/tools, "Error Handling"). It should say what to do differently, and hold no secret.
    """

    def __init__(self, message: str) -> None:
        """Say why.

        Args:
            message: What the caller reads.
        """
        super().__init__(message)
        self.message = message
