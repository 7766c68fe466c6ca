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


class NoEffectError(ToolError):
    """A call to an API that was not carried out: a call with the same key under `policy.once` may run."""


class UnknownEffectError(ToolError):
    """A call to an API whose effect is unknown: it was sent, and the answer does not show what came of it."""
