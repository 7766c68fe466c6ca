"""How calls end: what the caller gets, and how the record of the call puts it.

Takes texts; gives outcomes. A call that fails is a result as well (MCP 2025-11-25, server/tools, "Error Handling").
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from ...values.sanitizing import Cleaned, clean

Ending: TypeAlias = Literal["completed", "tool_error", "denied", "limited", "invalid", "failed", "cancelled"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How one call ended.

    Attributes:
        result: `content`, and `structuredContent` or `isError`, as they go on the wire in the newest revision.
        ending: How it ended.
        reason: Why, in one word, where it did not complete.
        reference: What the log calls it by, where the log says more.
        cleaned: What was taken out of what the handler gave (`policy.sanitize`).
    """

    result: dict[str, Any]
    ending: Ending = "completed"
    reason: str | None = None
    reference: str | None = None
    cleaned: Cleaned = field(default_factory=Cleaned)


def refusal(text: str, ending: Ending, reason: str, reference: str | None = None) -> Outcome:
    """Return an `isError` result that says `text`."""
    return Outcome({"content": [{"type": "text", "text": clean(text)}], "isError": True}, ending, reason, reference)
