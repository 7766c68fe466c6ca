"""Generates strings that match a regular expression.

Supports characters, classes, groups, alternatives, repetitions and anchors.

Anchors in the middle are ignored, so callers must validate the generated strings.
"""

from __future__ import annotations

import string
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeAlias

if TYPE_CHECKING:
    from random import Random

_Make: TypeAlias = Callable[["Random"], str]
_Sized: TypeAlias = tuple[_Make, int]
"""A string generator, and the maximum number of parts in its strings."""

_MORE: Final = 4
"""The maximum number of optional repetitions for an unbounded part."""

_MOST: Final = 1000
"""The maximum number of repetitions in a string."""

_LARGEST: Final = 20_000
"""The maximum number of parts in a string: characters and empty strings."""

_WIDEST: Final = 200_000
"""The maximum number of characters in all of a pattern's classes."""

_WORD: Final = string.ascii_letters + string.digits + "_"
_PRINTABLE: Final = "".join(map(chr, range(0x20, 0x7F)))
_CLASSES: Final = {"d": string.digits, "w": _WORD, "s": " \t"}
_ESCAPED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
_DIGITS: Final = 18
_HEX: Final = {"x": 2, "u": 4}


class UnreadableError(Exception):
    """The pattern has unsupported syntax, such as a lookahead or a back-reference, or is too large."""


def make_text(pattern: str, chance: Random) -> str:
    """Generate a string that probably matches the pattern.

    Raises:
        UnreadableError: The pattern has unsupported syntax.
    """
    make = _read(pattern)
    if make is None:
        raise UnreadableError(pattern)
    return make(chance)


@lru_cache(64)
def _read(pattern: str) -> _Make | None:
    reader = _Reader(pattern)
    try:
        make, size = reader.read_alternatives()
    except UnreadableError:
        return None
    return make if reader.is_at_end and size <= _LARGEST else None


class _Reader:
    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._class_size = 0

    @property
    def is_at_end(self) -> bool:
        return self._at == len(self._pattern)

    def _next(self) -> str:
        if self.is_at_end:
            raise UnreadableError(self._pattern)
        self._at += 1
        return self._pattern[self._at - 1]

    def _accept(self, expected: str) -> bool:
        matches = self._pattern.startswith(expected, self._at)
        self._at += len(expected) * matches
        return matches

    def read_alternatives(self) -> _Sized:
        sequences = [self._read_sequence()]
        while self._accept("|"):
            sequences.append(self._read_sequence())
        makers = [make for make, _ in sequences]
        return lambda chance: chance.choice(makers)(chance), max(size for _, size in sequences)

    def _read_sequence(self) -> _Sized:
        sized_parts: list[_Sized] = []
        while not self.is_at_end and self._pattern[self._at] not in "|)":
            sized_parts.append(self._repeat(*self._read_atom()))
        makers = [make for make, _ in sized_parts]
        return lambda chance: "".join(part(chance) for part in makers), 1 + sum(size for _, size in sized_parts)

    def _repeat(self, make: _Make, size: int) -> _Sized:
        least, most = self._read_bounds()
        self._accept("?")  # a lazy repetition matches the same strings
        if least > min(most, _MOST):
            raise UnreadableError(self._pattern)
        largest = min(most, least + _MORE)
        return lambda chance: "".join(make(chance) for _ in range(chance.randint(least, largest))), 1 + size * largest

    def _read_bounds(self) -> tuple[int, int]:
        for sign, least, most in (("*", 0, _MOST), ("+", 1, _MOST), ("?", 0, 1)):
            if self._accept(sign):
                return least, most
        end = self._pattern.find("}", self._at)
        if self.is_at_end or self._pattern[self._at] != "{" or end < 0:
            return 1, 1
        low, comma, high = self._pattern[self._at + 1 : end].partition(",")
        if not low.isdecimal() or not (high.isdecimal() or high == ""):
            return 1, 1  # a literal brace
        self._at = end + 1
        # Python does not parse integers with more than 4,300 digits.
        if len(low) > _DIGITS or len(high) > _DIGITS:
            raise UnreadableError(self._pattern)
        return int(low), int(high) if high else (_MOST if comma else int(low))

    def _read_atom(self) -> _Sized:
        char = self._next()
        match char:
            case "^" | "$":
                return _make_constant(""), 1
            case ".":
                return lambda chance: chance.choice(_WORD), 1
            case "(":
                return self._read_group()
            case "[":
                chars = self._read_class()
                return lambda chance: chance.choice(chars), 1
            case "\\":
                chars = self._read_escape()
                return (lambda chance: chance.choice(chars)) if chars else _make_constant(""), 1
            case "*" | "+" | "?" | ")":
                raise UnreadableError(self._pattern)
        return _make_constant(char), 1

    def _read_group(self) -> _Sized:
        if self._accept("?"):
            if self._accept("<") and self._pattern[self._at : self._at + 1] not in ("=", "!"):
                self._at = self._pattern.find(">", self._at) + 1 or len(self._pattern)
            elif not self._accept(":"):
                raise UnreadableError(self._pattern)
        inner = self.read_alternatives()
        if not self._accept(")"):
            raise UnreadableError(self._pattern)
        return inner

    def _read_escape(self) -> str:
        """Return the characters that an escape matches. A word boundary matches no characters."""
        char = self._next()
        if char.lower() in _CLASSES:
            inside = _CLASSES[char.lower()]
            return inside if char.islower() else _exclude(inside)
        if char in "bB":
            return ""
        if char in _HEX:
            digits = self._pattern[self._at : self._at + _HEX[char]]
            self._at += _HEX[char]
            if len(digits) < _HEX[char] or not set(digits) <= set(string.hexdigits):
                raise UnreadableError(self._pattern)
            return chr(int(digits, 16))
        if char in _ESCAPED:
            return _ESCAPED[char]
        if char.isalnum():
            raise UnreadableError(self._pattern)
        return char

    def _read_class(self) -> str:
        negated = self._accept("^")
        chars = ""
        while not self._accept("]"):
            low = self._read_member()
            if len(low) == 1 and self._pattern.startswith("-", self._at) and self._pattern[self._at + 1 :][:1] != "]":
                self._at += 1
                high = self._read_member()
                if len(high) != 1 or high < low or ord(high) - ord(low) > 0xFFFF:
                    raise UnreadableError(self._pattern)
                low = "".join(map(chr, range(ord(low), ord(high) + 1)))
            self._class_size += len(low)
            if self._class_size > _WIDEST:
                raise UnreadableError(self._pattern)
            chars += low
        chosen = _exclude(chars) if negated else chars
        if not chosen:
            raise UnreadableError(self._pattern)
        return chosen

    def _read_member(self) -> str:
        char = self._next()
        if char != "\\":
            return char
        return "\b" if self._accept("b") else self._read_escape()


def _make_constant(text: str) -> _Make:
    return lambda _chance: text


def _exclude(chars: str) -> str:
    return "".join(char for char in _WORD + _PRINTABLE if char not in chars)
