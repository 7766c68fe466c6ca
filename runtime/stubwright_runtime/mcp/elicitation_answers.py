"""Answers of a person to a question other than a filled-in form: yes, no, or nothing.

A handler gets these as answers, and a client's `on_question` returns them. Distinguish them with `isinstance`; those
without an answer are false, so that `if answer := await ctx.ask.confirm():` reads well.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, final

from ..values.json import is_list, is_mapping

_ACTIONS: Final = ("accept", "decline", "cancel")


@dataclass(frozen=True, slots=True)
class ElicitResult:
    """A client's unchecked answer (MCP 2025-11-25, schema, `ElicitResult`).

    Attributes:
        action: The decision: `accept`, `decline` or `cancel`.
        content: The fields of the form, if it is accepted; not checked against the form's schema.
    """

    action: str
    content: Mapping[str, Any]

    @classmethod
    def from_json(cls, value: object) -> ElicitResult:
        """Return the answer that a result holds. Raises ValueError if it is none."""
        if not is_mapping(value):
            raise ValueError("it should be an object")
        action, content = value.get("action"), value.get("content")
        if action not in _ACTIONS:
            raise ValueError("action: it should be 'accept', 'decline' or 'cancel'")
        if content is not None and not is_mapping(content):
            raise ValueError("content: it should be an object")
        for name, field_value in (content or {}).items():
            if not _is_primitive(field_value):
                raise ValueError(f"content.{name}: it should be a string, a number, a boolean or a list of strings")
        return cls(action, content or {})


def _is_primitive(value: object) -> bool:
    if is_list(value):
        return all(isinstance(item, str) for item in value)
    return value is None or isinstance(value, str | int | float)


@final
@dataclass(frozen=True, slots=True)
class Accepted:
    """Yes: the person agreed (MCP 2025-11-25, client/elicitation, "Response Actions", `accept`).

    For a question with a URL it means that the person agreed to open it, not that they are done there. For a form it
    sends the form's defaults.

    Attributes:
        elicitation: With this a handler tells the client that the person is done at the URL (`ctx.complete`), up to
            2025-11-25.
    """

    elicitation: str | None = field(default=None, compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Declined:
    """No: the person declined (MCP 2025-11-25, client/elicitation, "Response Actions", `decline`)."""

    def __bool__(self) -> Literal[False]:
        """Return False: it is not an answer."""
        return False


@final
@dataclass(frozen=True, slots=True)
class Cancelled:
    """No answer: the person closed the question (MCP 2025-11-25, client/elicitation, "Response Actions", `cancel`)."""

    def __bool__(self) -> Literal[False]:
        """Return False: it is not an answer."""
        return False
