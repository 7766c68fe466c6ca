"""The outcomes of tool calls. A failed call also has a result (MCP 2025-11-25, server/tools, "Error Handling")."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from ...values.sanitizing import clean

OutcomeStatus: TypeAlias = Literal["completed", "tool_error", "denied", "limited", "invalid", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of one tool call.

    Attributes:
        result: The result for the caller, in the format of the newest revision.
        status: The call's status in the audit log.
        reason: One word for why the call did not complete, otherwise `None`.
        reference: The ID of a log line with details, if any.
        cleaned: The number of strings in the result that `policy.sanitize` changed.
    """

    result: dict[str, Any]
    status: OutcomeStatus = "completed"
    reason: str | None = None
    reference: str | None = None
    cleaned: int = 0


def refuse(text: str, status: OutcomeStatus, reason: str, reference: str | None = None) -> Outcome:
    """Return the outcome of a call that did not complete; its `isError` result contains `text`."""
    return Outcome({"content": [{"type": "text", "text": clean(text)}], "isError": True}, status, reason, reference)
