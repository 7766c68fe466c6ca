"""Exceptions that a handler raises to report a failure to the caller."""

from __future__ import annotations


class ToolError(Exception):
    """Reports a failed call to the caller.

    The message is returned unchanged, in a result with `isError: true`, so that a model can fix its call (MCP
    2025-11-25, server/tools, "Error Handling"). Describe what to do differently, without secrets.
    """

    def __init__(self, message: str) -> None:
        """Create an error.

        Args:
            message: The message for the caller.
        """
        super().__init__(message)
        self.message = message


class NoEffectError(ToolError):
    """Reports that an API call had no effect, so `policy.once` allows another call with the same key."""


class UnknownEffectError(ToolError):
    """Reports that an API call might have had an effect: the request was sent, but no response shows the outcome."""
