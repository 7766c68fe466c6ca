"""Limits the nesting depth of JSON values in messages."""

from __future__ import annotations

from typing import Any, Final

DEEPEST: Final = 192
"""The maximum nesting depth of a value.

The SDK reads messages with up to 201 levels and closes the connection when it writes 256. Messages add up to seven
levels, in the `_meta` of a resource in a content block of a prompt message."""


_CONTAINERS: Final = (dict, list, tuple)


class DepthError(ValueError):
    """A value is nested too deeply for a message."""

    def __init__(self, place: str = "the value") -> None:
        """Create an error that identifies the value by its location."""
        super().__init__(f"{place} is nested more than {DEEPEST} levels deep, too deep for a message")


def is_too_deep(value: Any, size: int | None = None) -> bool:
    """Return whether an acyclic value has more than `DEEPEST` levels.

    Args:
        value: A JSON value.
        size: The size of its JSON in bytes, if known. Small values are not checked.
    """
    if size is not None and size <= 2 * DEEPEST:
        return False
    level = [value] if isinstance(value, _CONTAINERS) else []
    for _ in range(DEEPEST):
        if not level:
            return False
        level = [
            below
            for container in level
            for below in (container.values() if isinstance(container, dict) else container)
            if isinstance(below, _CONTAINERS)
        ]
    return bool(level)
