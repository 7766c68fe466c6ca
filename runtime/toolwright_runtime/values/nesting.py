"""How deep a JSON value may be nested, so that a message can carry it.

Takes values that JSON has; changes nothing. Imports nothing, since servers and clients both need it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from typing_extensions import TypeIs

DEEPEST: Final = 192
"""Levels of objects and arrays. The SDK reads messages of 201 levels; its writers end a connection at 256. In a message
a value stands at most seven levels deep: the `_meta` of a resource in a block of a prompt's message."""


class DepthError(ValueError):
    """A value that no message can carry."""

    def __init__(self, place: str = "the value") -> None:
        """Say which value."""
        super().__init__(f"{place} is nested more than {DEEPEST} levels deep, which no message can carry")


def is_too_deep(value: Any, text: str | None = None) -> bool:
    """Whether a value has more than `DEEPEST` levels; it must not hold itself.

    Args:
        value: What `json.dumps` takes.
        text: Its JSON, where that is there already: a value with few brackets needs no look.
    """
    if text is not None and text.count("{") + text.count("[") <= DEEPEST:
        return False
    level = [value] if _holds(value) else []
    for _ in range(DEEPEST):
        level = [below for one in level for below in (one.values() if isinstance(one, dict) else one) if _holds(below)]
        if not level:
            return False
    return True


def _holds(value: object) -> TypeIs[dict[Any, Any] | list[Any] | tuple[Any, ...]]:
    return isinstance(value, dict | list | tuple)
