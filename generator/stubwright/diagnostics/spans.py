"""Locations in documents, and spans in their text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Pointer: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A location in a document.

    Attributes:
        file: The file path, as the user wrote it.
        pointer: The keys and indexes on the path to the value.
        on: `key` for the location of the value's key, `value` for the value itself.
        part: The start and the exclusive end of a range of characters in the unescaped string; empty for all of it.
    """

    file: str
    pointer: Pointer = ()
    on: Literal["key", "value"] = "value"
    part: tuple[int, int] | tuple[()] = ()

    def __truediv__(self, step: str | int) -> Place:
        """Return the location of the child at `step`, a key or an index."""
        return Place(self.file, (*self.pointer, step))

    def point_at_key(self) -> Place:
        """Return the location of the key of the value at this location."""
        return Place(self.file, self.pointer, "key")


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A range of text in a file. Lines and columns start at 1, columns count characters, and the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
