"""Source positions: converts offsets to lines and columns, and locations to offsets."""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from dataclasses import dataclass
from typing import TypeAlias

from stubwright.diagnostics import Diagnostic, Place, Span
from stubwright.diagnostics.suggestions import shorten

MAX_DEPTH = 200
"""Maximum nesting depth, since validators and generators recurse. Real schemas stay below 20."""

MAX_DIGITS = 4300
"""Maximum number of digits: Python's limit for parsing integers."""

_BREAK = re.compile(r"\r\n|\n|\r")


@dataclass(slots=True)
class Node:
    """A token or container, as offsets in the text. `children` is None for scalars.

    Each child is paired with its key token, or with None in lists. `flow` containers start with a bracket.
    """

    start: int
    end: int
    children: dict[str | int, Child] | None = None
    flow: bool = False


Child: TypeAlias = tuple[Node | None, Node]


@dataclass(frozen=True, slots=True)
class Problem:
    """A problem in the text between two offsets. `Lines.report` converts it to a diagnostic."""

    code: str
    message: str
    start: int
    end: int
    help: str | None = None


class Lines:
    """The lines of a text. Line and column numbers start at 1, and columns count characters."""

    def __init__(self, text: str) -> None:
        """Index the lines in `text`. Lines end with a line feed, a carriage return, or both."""
        self._text = text
        self._starts = [0, *(match.end() for match in _BREAK.finditer(text))]

    def find_position(self, offset: int) -> tuple[int, int]:
        """Return an offset's line and column."""
        line = bisect_right(self._starts, offset)
        return line, offset - self._starts[line - 1] + 1

    def find_offset(self, line: int, column: int) -> int:
        """Return the offset of an existing line and column."""
        return self._starts[line - 1] + column - 1

    def get_part(self, number: int, first: int, end: int) -> str | None:
        """Return columns `first` (inclusive) to `end` (exclusive) of a line, or None if the line does not exist.

        The cost depends only on the part's length, since a single line can be many megabytes long.
        """
        if not 1 <= number <= len(self._starts):
            return None
        start = self._starts[number - 1]
        return self._text[start + first - 1 : start + min(end - 1, self.measure_width(number))]

    def measure_width(self, number: int) -> int:
        """Return a line's length in characters, excluding the line break."""
        if not 1 <= number <= len(self._starts):
            return 0
        start = self._starts[number - 1]
        end = self._starts[number] if number < len(self._starts) else len(self._text)
        while end > start and self._text[end - 1] in "\r\n":
            end -= 1
        return end - start

    def find_span(self, file: str, start: int, end: int) -> Span:
        """Return the span from `start` to `end`, truncated to the first line and at least one character wide."""
        line, column = self.find_position(min(start, len(self._text)))
        rest = self.measure_width(line) - column + 1
        width = max(1, min(end - start, rest))
        return Span(file, line, column, line, column + width)

    def report(self, file: str, problem: Problem) -> Diagnostic:
        """Convert a problem to a diagnostic, with line and column."""
        return Diagnostic(problem.code, problem.message, self.find_span(file, problem.start, problem.end), problem.help)


def locate(root: Node, place: Place) -> tuple[int, int]:
    """Return the offsets of the token for a location, or for its nearest existing ancestor.

    The token is the key if the location points at the key. A scalar is its own token, and a container's token is its
        key, or without a key its first key, bracket or dash.
    """
    key: Node | None = None
    here = root
    for step in place.pointer:
        child = (here.children or {}).get(step)
        if child is None:
            break
        key, here = child
    else:
        if place.on == "key" and key is not None:
            return key.start, key.end
    return _find_token(key, here)


def locate_part(text: str, start: int, end: int, part: tuple[int, int]) -> tuple[int, int]:
    """Return the offsets of part of a string, which has the token from `start` to `end`.

    For strings with escapes or line breaks, return the token's offsets.
    """
    token = text[start:end]
    quote = 1 if token[:1] in ("'", '"') else 0
    if "\\" in token or "\n" in token or "''" in token or quote + part[1] > len(token):
        return start, end
    return start + quote + part[0], start + quote + part[1]


def _find_token(key: Node | None, here: Node) -> tuple[int, int]:
    if here.children is None and here.start < here.end:
        return here.start, here.end
    if key is not None:
        return key.start, key.end
    if here.children is not None:
        if here.flow or not here.children:
            return here.start, here.start + 1
        key, _ = next(iter(here.children.values()))
        return (here.start, here.start + 1) if key is None else (key.start, key.end)
    return here.start, here.end


def find_odd_space(text: str, at: int) -> Problem | None:
    """Return a problem if the character looks like a space but is part of a word in YAML and JSON."""
    char = text[at : at + 1]
    if char in " \t\r\n" or not char.isspace():
        return None
    message = f"this looks like a space, but is U+{ord(char):04X} ({unicodedata.name(char, 'a control').lower()})"
    return Problem(
        "SW004", message, at, at + 1, "replace it with a regular space; copied text often contains other spaces"
    )


def report_depth(start: int, end: int) -> Problem:
    """Return a problem for excessive nesting."""
    message = f"this is nested more than {MAX_DEPTH} levels deep"
    fix = "define the inner parts under `schemas` or `$defs`, and refer to them with `$ref`"
    return Problem("SW008", message, start, end, fix)


def report_empty(message: str) -> Problem:
    """Return a problem for a file without a value."""
    return Problem("SW003", message, 0, 1, "`stubwright new` creates a project with a working manifest")


def report_duplicate(key: str, line: int, again: Node) -> Problem:
    """Return a problem for a duplicate key that first occurs on `line`."""
    message = f"duplicate key `{shorten(key)}`; the first one is on line {line}"
    return Problem("SW005", message, again.start, again.end, "remove or rename one")
