"""The depth to which a JSON value may be nested to fit into a message.

Imports nothing, since servers and clients both need it.
"""

from __future__ import annotations

from typing import Any, Final

DEEPEST: Final = 192
"""Levels of objects and arrays. The SDK reads messages of 201 levels; its writers end a connection at 256. In a message
a value is at most seven levels deep: the `_meta` of a resource in a block of a prompt's message."""


_CONTAINERS: Final = (dict, list, tuple)


class DepthError(ValueError):
    """A value that is nested too deeply for a message."""

    def __init__(self, place: str = "the value") -> None:
        """Name the value."""
        super().__init__(f"{place} is nested more than {DEEPEST} levels deep, too deep for a message")


def is_too_deep(value: Any, text: str | None = None, size: int | None = None) -> bool:
    """Return whether a value has more than `DEEPEST` levels; it must not contain itself.

    Args:
        value: Anything that `json.dumps` accepts.
        text: Its JSON, if available: a value with few brackets is not walked.
        size: The bytes of its JSON, if they are known: each level takes two of them.
    """
    if size is not None and size <= 2 * DEEPEST:
        return False
    if text is not None and text.count("{") + text.count("[") <= DEEPEST:
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
