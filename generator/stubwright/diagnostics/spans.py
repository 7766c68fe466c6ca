"""Locations in documents and spans of their text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Pointer: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A location in a document.

    Attributes:
        file: The file, as users name it.
        pointer: The path of keys and indexes.
        on: The key or the value at the path.
        part: The start and the exclusive end of characters in a string without escapes; empty for the whole string.
    """

    file: str
    pointer: Pointer = ()
    on: Literal["key", "value"] = "value"
    part: tuple[int, int] | tuple[()] = ()

    def __truediv__(self, step: str | int) -> Place:
        """Return the place of a child."""
        return Place(self.file, (*self.pointer, step))

    def point_at_key(self) -> Place:
        """Return the place of this value's key."""
        return Place(self.file, self.pointer, "key")


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A range of text in a file: lines and columns count from 1, columns in characters; the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
