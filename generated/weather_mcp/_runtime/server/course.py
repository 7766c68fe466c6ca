# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""The course of one call, as those see it who record it: what is known of it so far, and what the log calls it.

Takes what the parts of the server learn while they answer; holds it for the length of the request.
"""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from ..package import Tool
    from .outcomes import Ending, Outcome
    from .principal import Principal


def _new_id() -> str:
    return secrets.token_hex(8)


@dataclass(slots=True)
class Course:
    """One call of a tool.

    Attributes:
        id: What the log, the record and the caller know the call by; no other call has the same.
        principal: Who asks.
        tool: The tool, once it is known that there is one and that the caller may use it.
        arguments: What the caller sent.
        size: The bytes of these as JSON.
        ending: How it ended, where that is known.
        reason: Why, in one word, where it did not complete.
        reference: The id, where the log says more by it and there is no outcome.
        outcome: The same with its result, where a tool was asked.
        is_valid: Whether the arguments were found valid, so that they are what the manifest says.
    """

    id: str = field(default_factory=_new_id)
    principal: Principal | None = None
    tool: Tool | None = None
    arguments: Mapping[str, Any] | None = None
    size: int | None = None
    ending: Ending | None = None
    reason: str | None = None
    reference: str | None = None
    outcome: Outcome | None = None
    is_valid: bool = False


CURRENT: Final[ContextVar[Course | None]] = ContextVar("course", default=None)
"""The call that is being answered, where calls are recorded."""


def reference() -> str:
    """What the log and the caller call a failure by: the id of the call, where it is recorded."""
    current = CURRENT.get()
    return secrets.token_hex(4) if current is None else current.id
