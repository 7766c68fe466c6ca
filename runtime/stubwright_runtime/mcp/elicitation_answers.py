"""A person's answers to a question, without form values, for handlers and a client's `on_question`.

`Declined` and `Cancelled` are falsy, so that `if answer := await ctx.ask.confirm():` works.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Final, Literal, final

from ..values.json import is_list, is_mapping

_ACTIONS: Final = ("accept", "decline", "cancel")


@dataclass(frozen=True, slots=True)
class ElicitResult:
    """A client's unvalidated answer (MCP 2025-11-25, schema, `ElicitResult`).

    Attributes:
        action: The decision: `accept`, `decline` or `cancel`.
        content: The form's values, if accepted. They are not validated.
    """

    action: str
    content: Mapping[str, Any]

    @classmethod
    def from_json(cls, value: object) -> ElicitResult:
        """Parse a result. Raises ValueError if it is invalid."""
        if not is_mapping(value):
            raise ValueError("it must be an object")
        action, content = value.get("action"), value.get("content")
        if action not in _ACTIONS:
            raise ValueError("action: it must be 'accept', 'decline' or 'cancel'")
        if content is not None and not is_mapping(content):
            raise ValueError("content: it must be an object")
        for name, field_value in (content or {}).items():
            if not _is_primitive(field_value):
                raise ValueError(f"content.{name}: it must be a string, a number, a boolean or a list of strings")
        return cls(action, content or {})


def _is_primitive(value: object) -> bool:
    if is_list(value):
        return all(isinstance(item, str) for item in value)
    return value is None or isinstance(value, str | int | float)


@final
@dataclass(frozen=True, slots=True)
class Accepted:
    """The person accepted (MCP 2025-11-25, client/elicitation, "Response Actions", `accept`).

    A person who accepted a URL agreed to open the URL, but may not have finished there. The answer to a form includes
    the form's defaults.

    Attributes:
        elicitation: The ID for `ctx.complete`, which notifies the client that the person has finished at the URL, up to
            2025-11-25.
    """

    elicitation: str | None = field(default=None, compare=False, repr=False)


@final
@dataclass(frozen=True, slots=True)
class Declined:
    """The person declined (MCP 2025-11-25, client/elicitation, "Response Actions", `decline`)."""

    def __bool__(self) -> Literal[False]:
        """Return False, since there is no answer."""
        return False


@final
@dataclass(frozen=True, slots=True)
class Cancelled:
    """The person dismissed the question (MCP 2025-11-25, client/elicitation, "Response Actions", `cancel`)."""

    def __bool__(self) -> Literal[False]:
        """Return False, since there is no answer."""
        return False
