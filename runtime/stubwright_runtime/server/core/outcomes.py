"""The outcomes of calls: the result for the caller, and the status for the record.

A call that fails is a result as well (MCP 2025-11-25, server/tools, "Error Handling").
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ...values.sanitizing import clean

OutcomeStatus: TypeAlias = Literal["completed", "tool_error", "denied", "limited", "invalid", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one call.

    Attributes:
        result: `content`, and `structuredContent` or `isError`, as they go on the wire in the newest revision.
        status: The status for the record.
        reason: The reason in one word, if it did not complete.
        reference: Its reference in the log, if the log says more.
        cleaned: The number of texts in it that were sanitized (`policy.sanitize`).
    """

    result: dict[str, Any]
    status: OutcomeStatus = "completed"
    reason: str | None = None
    reference: str | None = None
    cleaned: int = 0


def refuse(text: str, status: OutcomeStatus, reason: str, reference: str | None = None) -> Outcome:
    """Return an `isError` result that says `text`."""
    return Outcome({"content": [{"type": "text", "text": clean(text)}], "isError": True}, status, reason, reference)
