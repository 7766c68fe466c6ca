"""The outcomes of calls; a failed call also has a result (MCP 2025-11-25, server/tools, "Error Handling")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ...values.sanitizing import clean

OutcomeStatus: TypeAlias = Literal["completed", "tool_error", "denied", "limited", "invalid", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one call.

    Attributes:
        result: The result for the caller, in the newest revision.
        status: The status for the record.
        reason: The reason in one word, if the call did not complete.
        reference: The reference of a log entry with details, if any.
        cleaned: The number of sanitized strings in the result (`policy.sanitize`).
    """

    result: dict[str, Any]
    status: OutcomeStatus = "completed"
    reason: str | None = None
    reference: str | None = None
    cleaned: int = 0


def refuse(text: str, status: OutcomeStatus, reason: str, reference: str | None = None) -> Outcome:
    """Return an outcome with an `isError` result."""
    return Outcome({"content": [{"type": "text", "text": clean(text)}], "isError": True}, status, reason, reference)
