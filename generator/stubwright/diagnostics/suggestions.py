"""Describes values in messages and suggests corrections."""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

KINDS = {
    "object": "a mapping",
    "array": "a list",
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "a boolean",
    "null": "`null`",
}
"""Words for a value of each JSON Schema type."""


@dataclass(frozen=True, slots=True)
class Rename:
    """A correction that replaces the scalar `old` with `new` and keeps its quotes."""

    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Requote:
    """A correction that adds quotes to a scalar, or removes them if `is_quoted` is true."""

    is_quoted: bool


@dataclass(frozen=True, slots=True)
class Insert:
    """A correction that inserts an entry at the start of a mapping."""

    key: str
    value: str


Correction: TypeAlias = Rename | Requote | Insert


class Advice(str):
    """A help message with a correction for the diagnostic's location, which `check --fix` applies."""

    __slots__ = ("correction",)

    correction: Correction

    def __new__(cls, text: str, correction: Correction) -> Advice:
        """Create a help message with its correction."""
        advice = super().__new__(cls, text)
        advice.correction = correction
        return advice


REMOVE_QUOTES: Final = Advice("remove the quotes", Requote(is_quoted=False))
ADD_QUOTES: Final = Advice("put it in quotes", Requote(is_quoted=True))


def describe_found(value: Any) -> str:
    """Describe a value in the manifest, such as "the string `abc`" or "a mapping"."""
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if value is None:
        return "`null`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return (
            f"the string `{shorten(value)}`" if value.strip() else "an empty string" if not value else "a blank string"
        )
    return f"the number `{shorten(str(value))}`"


def quote(values: Iterable[Any]) -> str:
    """Quote values for a message, as in "`a`, `b` or `c`"."""
    *most, last = [f"`{format_scalar(value)}`" for value in values]
    return f"{', '.join(most)} or {last}" if most else last


def format_scalar(value: Any) -> str:
    """Format a scalar as YAML and JSON do, without quotes."""
    return (
        {True: "true", False: "false", None: "null"}[value]
        if value is None or value is True or value is False
        else str(value)
    )


def is_quoted(value: Any, types: Iterable[str]) -> bool:
    """Return whether a quoted string would have one of `types` without its quotes."""
    if not isinstance(value, str):
        return False
    return ("boolean" in types and value in ("true", "false")) or (
        ("integer" in types or "number" in types) and value.isdecimal() and value.isascii()
    )


def find_nearest(word: str, known: Iterable[str]) -> str | None:
    """Return the known word most similar to `word`, ignoring case, `-` and `_`; None if no word is similar."""
    return _find_nearest(word, list(known), _ALIKE)


def find_misspelt(word: str, known: Iterable[str]) -> str | None:
    """Return the known word that `word` certainly misspells, or None.

    Use this function for words that can be valid, and `find_nearest` for invalid words. Two swapped adjacent letters
    count
    as a misspelling even in short words such as `type`.
    """
    names = list(known)
    near = _find_nearest(word, names, _THE_SAME)
    if near is None and len(word) >= _SLIP_FROM:
        near = next((other for other in names if sorted(other) == sorted(word) and _edits(word, other) == 1), None)
    return near


def is_slip(word: str, other: str) -> bool:
    """Return whether `word` looks like `other` with one or two wrong letters.

    Both words can be valid, so deliberately similar names do not count: `v1` and `v2`, `get` and `set`, `import` and
    `export`. The words can differ in only one part, by one letter, or by two if the part is long.
    """
    parts, others = (re.split(r"[^a-z0-9]+", each.casefold()) for each in (word, other))
    if word == other or len(parts) != len(others):
        return False
    match [(mine, its) for mine, its in zip(parts, others, strict=True) if mine != its]:
        case []:
            return True
        case [(mine, its)] if min(len(mine), len(its)) >= _SLIP_FROM and mine[0] == its[0]:
            allowed = 1 if min(len(mine), len(its)) < _TWO_SLIPS_FROM else 2
            return re.findall(r"\d", mine) == re.findall(r"\d", its) and _edits(mine, its) <= allowed
        case _:
            return False


def suggest(word: str, near: str) -> Advice:
    """Return help that suggests `near`, with a correction that replaces `word`."""
    return Advice(f"did you mean `{near}`?", Rename(word, near))


def did_you_mean(word: str, known: Iterable[str], what: str) -> str:
    """Suggest the known word nearest to an unknown word, or list the known words.

    Args:
        what: The plural noun for the known words, such as "handles".
    """
    names = list(known)
    near = find_nearest(word, names)
    if near:
        return suggest(word, near)
    listed = ", ".join(f"`{name}`" for name in names[:_LISTED])
    return f"the {what} are {listed}{', …' if len(names) > _LISTED else ''}" if names else f"there are no {what}"


def shorten(text: str, limit: int = 40) -> str:
    """Put text on one line for a message, and truncate it to `limit` characters."""
    flat = " ".join(text.split())
    return flat if len(flat) <= limit else f"{flat[: limit - 1]}…"


_ALIKE: Final = 0.62
_THE_SAME: Final = 0.8
"""Minimum similarity (0 to 1) for a possible and for a certain misspelling."""

_SLIP_FROM: Final = 4
_TWO_SLIPS_FROM: Final = 7
"""Minimum length of a word part for one and for two wrong letters to count as a slip."""

_LISTED: Final = 10
_COMPARED: Final = 100  # characters; comparing takes quadratic time


def _find_nearest(word: str, known: list[str], cutoff: float) -> str | None:
    plain = _normalize_word(word)
    if same := next((other for other in known if _normalize_word(other) == plain), None):
        return same
    alike = {other.casefold(): other for other in reversed(known)}
    near = difflib.get_close_matches(word[:_COMPARED].casefold(), alike, 1, cutoff)
    return alike[near[0]] if near else None


def _edits(word: str, other: str) -> int:
    """Count the letters to insert, delete, replace or swap with a neighbor to turn one word into the other.

    If the lengths differ by more than two, return the longer word's length.
    """
    if abs(len(word) - len(other)) > 2 or max(len(word), len(other)) > _COMPARED:
        return max(len(word), len(other))
    before: list[int] = []
    row = list(range(len(other) + 1))
    for index, letter in enumerate(word, 1):
        before, above, row = row, before, [index]
        for column, its in enumerate(other, 1):
            edits = min(before[column] + 1, row[-1] + 1, before[column - 1] + (letter != its))
            if index > 1 and column > 1 and word[index - 2] == its and letter == other[column - 2]:
                edits = min(edits, above[column - 2] + 1)
            row.append(edits)
    return row[-1]


def _normalize_word(word: str) -> str:
    return word.replace("-", "").replace("_", "").casefold()
