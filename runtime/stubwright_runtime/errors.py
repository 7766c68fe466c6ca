"""The error that a handler raises to tell its caller why a call failed."""

from __future__ import annotations


class ToolError(Exception):
    """Raised by a handler to tell the caller why a call failed.

    The message goes to the caller unchanged, in a result with `isError: true`, so that a model can fix its call
    (MCP 2025-11-25, server/tools, "Error Handling"). It should describe what to do differently, and contain no secrets.
    """

    def __init__(self, message: str) -> None:
        """Take the message.

        Args:
            message: What the caller reads.
        """
        super().__init__(message)
        self.message = message
