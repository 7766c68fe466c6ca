"""Formats JSON values for a user's decision, and lists what was omitted.

A shortened value shows both ends, so that a harmless start cannot hide the rest.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final

from ...values.json import Json

_MAX_CHARACTERS: Final = 2000
"""The maximum length of the whole text in characters. The last measure can exceed it."""

_PLACES: Final = 8
"""The maximum number of omissions to list."""

_STEP: Final = 40
"""The maximum length of a JSON Pointer's step in an omission, in characters."""

_BLANK: Final = "\xad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef"
"""Characters that are invisible although `str.isprintable` is true: fillers and variation selectors."""

_SUSPECT: Final = re.compile(f"[{_BLANK}]|  ")
_SPACES: Final = re.compile("  +")
_BLANKS: Final = re.compile(f"[{_BLANK}]")


@dataclass(frozen=True, slots=True)
class _Measure:
    """The limits for one attempt: characters per string, entries per list or object, and nesting levels."""

    characters: int
    entries: int
    levels: int


_MEASURES: Final = (
    _Measure(1000, 500, 20),
    _Measure(400, 60, 6),
    _Measure(120, 24, 4),
    _Measure(60, 12, 3),
    _Measure(30, 12, 2),
    _Measure(16, 12, 1),
)


class _TooLongError(Exception):
    """The text exceeds the total length with the current measure."""


class Truncation:
    """Formats values within one measure, and lists what was omitted."""

    def __init__(self, measure: _Measure, longest: int | None) -> None:
        """Create a formatter; `longest` is the maximum total length in characters, or `None`."""
        self._measure = measure
        self._longest = longest
        self._length = 0
        self._omissions: list[str] = []

    def format_json(self, value: Json, *place: str) -> str:
        """Return a value as JSON, shortened; `place` is the value's path, for the list of omissions."""
        return self._json(value, place, 0)

    def format_words(self, value: Json, *place: str) -> str:
        """Return a value for use in a sentence: a string without quotes, any other value as JSON."""
        if not isinstance(value, str):
            return self.format_json(value, *place)
        return self._cut(value, _escape_text, "characters", place)

    def describe_omissions(self) -> str:
        """Return a line that lists the omissions; an empty string if nothing was omitted."""
        if not self._omissions:
            return ""
        named = self._omissions[:_PLACES]
        more = len(self._omissions) - len(named)
        others = f", and {more:,} more omission{'' if more == 1 else 's'}" if more else ""
        return f"\nNot shown: {'; '.join(named)}{others}."

    def _json(self, value: Json, place: tuple[str, ...], level: int) -> str:
        if isinstance(value, str):
            return self._cut(value, _quote, "characters", place)
        if isinstance(value, dict):
            entries = [*value.items()]

            def format_member(index: int) -> str:
                key, inner = entries[index]
                name = self._cut(key, _quote, "characters of a key", place)
                return f"{name}: {self._json(inner, (*place, key), level + 1)}"

            return self._entries(len(value), "key", "{}", format_member, place, level)
        if isinstance(value, list):
            items = value
            return self._entries(
                len(items), "item", "[]", lambda at: self._json(items[at], (*place, str(at)), level + 1), place, level
            )
        return self._cut(json.dumps(value), str, "characters", place)

    def _entries(
        self, size: int, noun: str, braces: str, each: Callable[[int], str], place: tuple[str, ...], level: int
    ) -> str:
        """Format the entries of an object or list. If there are too many, format only the first and last entries."""
        most = self._measure.entries if level < self._measure.levels else 0
        nouns = noun if size == 1 else f"{noun}s"
        self._count(len(braces) + 2 * min(size, most))
        if size <= most:
            shown: Iterable[str] = map(each, range(size))
        else:
            tail = most // 4
            ends = [*range(most - tail), *range(size - tail, size)]
            self._record_omission(size - most, size, nouns, place)
            gap = f"⟨{size - most:,} {nouns}⟩"
            shown = [*map(each, ends[: most - tail]), gap, *map(each, ends[most - tail :])]
        return f"{braces[0]}{', '.join(shown)}{braces[1]}"

    def _cut(self, text: str, write: Callable[[str], str], unit: str, place: tuple[str, ...]) -> str:
        """Format a string, or only its start and end if the string is too long."""
        most = self._measure.characters
        if len(text) <= most:
            shown = write(text)
        else:
            tail = most // 3
            hidden = len(text) - most
            self._record_omission(hidden, len(text), unit, place)
            shown = f"{write(text[: most - tail])} ⟨{hidden:,} characters⟩ {write(text[-tail:])}"
        self._count(len(shown))
        return shown

    def _count(self, characters: int) -> None:
        self._length += characters
        if self._longest is not None and self._length > self._longest:
            raise _TooLongError

    def _record_omission(self, hidden: int, size: int, unit: str, place: tuple[str, ...]) -> None:
        amount = f"all {size:,}" if hidden == size and size > 1 else f"{hidden:,} of {size:,}"
        self._omissions.append(
            f"{amount} {unit} at {_pointer(place)}" if place else f"{amount} {unit} of the arguments"
        )


def truncate(write: Callable[[Truncation], str]) -> str:
    """Return the output of `write` for the largest measure whose text fits, and a list of omissions.

    Args:
        write: Formats values with the `Truncation`; called again with a smaller measure until the text fits.
    """
    for measure in _MEASURES[:-1]:
        truncation = Truncation(measure, _MAX_CHARACTERS)
        try:
            text = write(truncation)
        except _TooLongError:
            continue
        return text + truncation.describe_omissions()
    truncation = Truncation(_MEASURES[-1], None)
    return write(truncation) + truncation.describe_omissions()


def _quote(text: str) -> str:
    return f'"{_show_invisible(json.dumps(text, ensure_ascii=False)[1:-1])}"'


def _escape_text(text: str) -> str:
    return _show_invisible(json.dumps(text, ensure_ascii=False)[1:-1].replace('\\"', '"'))


def _show_invisible(text: str) -> str:
    """Escape invisible characters, and replace each run of spaces with the number of spaces."""
    if text.isprintable() and _SUSPECT.search(text) is None:
        return text
    if not text.isprintable():
        text = "".join(character if character.isprintable() else _escape(character) for character in text)
    text = _BLANKS.sub(lambda match: _escape(match[0]), text)
    return _SPACES.sub(lambda match: f"⟨{len(match[0]):,} spaces⟩", text)


def _escape(character: str) -> str:
    return json.dumps(character)[1:-1]


def _pointer(place: tuple[str, ...]) -> str:
    steps = (_escape_text(step[:_STEP]) + ("…" if len(step) > _STEP else "") for step in place)
    return "".join("/" + step.replace("~", "~0").replace("/", "~1") for step in steps)
