"""Places in documents, and stretches of their text."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, TypeAlias

Pointer: TypeAlias = tuple[str | int, ...]


@dataclass(frozen=True, slots=True, order=True)
class Place:
    """A place in a document: the file, as users name it, and the path of keys and indexes in it.

    `on` specifies whether the key or the value is meant; `part`, which characters of a string, from the first to behind
    the last, if it is written without escapes.
    """

    file: str
    pointer: Pointer = ()
    on: Literal["key", "value"] = "value"
    part: tuple[int, int] | tuple[()] = ()

    def __truediv__(self, step: str | int) -> Place:
        """Return the value one key or index below."""
        return Place(self.file, (*self.pointer, step))

    def point_at_key(self) -> Place:
        """Return the key that holds this value, rather than the value."""
        return Place(self.file, self.pointer, "key")


@dataclass(frozen=True, slots=True, order=True)
class Span:
    """A stretch of text in a file: lines and columns count from 1, columns in characters; the end is exclusive."""

    file: str
    line: int
    column: int
    end_line: int
    end_column: int
