"""Texts that a regular expression matches.

Takes a pattern in the syntax of ECMA-262 and a source of chance; gives a text. It reads what patterns in schemas are
made of: characters, classes, groups, alternatives, repetitions and anchors. What it does not read is said, not guessed;
whether a text really fits is for a validator to say.
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
"""What makes a text, and how many parts that can have."""

_MORE: Final = 4
"""How often more than it must something is repeated that has no bound."""

_MOST: Final = 1000
"""Repetitions that a text still has."""

_LARGEST: Final = 20_000
"""Characters, and empty texts between them, that a text may be put together of."""

_WIDEST: Final = 200_000
"""Characters that all classes of a pattern may have."""

_WORD: Final = string.ascii_letters + string.digits + "_"
_PRINTABLE: Final = "".join(map(chr, range(0x20, 0x7F)))
_CLASSES: Final = {"d": string.digits, "w": _WORD, "s": " \t"}
_ESCAPED: Final = {"t": "\t", "n": "\n", "r": "\r", "f": "\f", "v": "\v", "0": "\0"}
_DIGITS: Final = 18
_HEX: Final = {"x": 2, "u": 4}


class UnreadableError(Exception):
    """The pattern has a part that is not read, such as a look-ahead or a back-reference, or asks for too much."""


def text(pattern: str, chance: Random) -> str:
    """A text that the pattern matches, most likely.

    Raises:
        UnreadableError: There is a part that is not read.
    """
    return _read(pattern)(chance)


@lru_cache(64)
def _read(pattern: str) -> _Make:
    reader = _Reader(pattern)
    make, size = reader.alternatives()
    if not reader.ended or size > _LARGEST:
        raise UnreadableError(pattern)
    return make


class _Reader:
    """Goes through a pattern once, and makes of each part what makes its text."""

    def __init__(self, pattern: str) -> None:
        self._pattern = pattern
        self._at = 0
        self._wide = 0

    @property
    def ended(self) -> bool:
        return self._at == len(self._pattern)

    def _next(self) -> str:
        if self.ended:
            raise UnreadableError(self._pattern)
        self._at += 1
        return self._pattern[self._at - 1]

    def _took(self, expected: str) -> bool:
        found = self._pattern.startswith(expected, self._at)
        self._at += len(expected) * found
        return found

    def alternatives(self) -> _Sized:
        """`a|b`."""
        found = [self._sequence()]
        while self._took("|"):
            found.append(self._sequence())
        ways = [make for make, _ in found]
        return lambda chance: chance.choice(ways)(chance), max(size for _, size in found)

    def _sequence(self) -> _Sized:
        found: list[_Sized] = []
        while not self.ended and self._pattern[self._at] not in "|)":
            found.append(self._repeated(*self._atom()))
        parts = [make for make, _ in found]
        return lambda chance: "".join(part(chance) for part in parts), 1 + sum(size for _, size in found)

    def _repeated(self, make: _Make, size: int) -> _Sized:
        least, most = self._bounds()
        self._took("?")  # a lazy repetition matches the same texts
        if least > min(most, _MOST):
            raise UnreadableError(self._pattern)
        largest = min(most, least + _MORE)
        return lambda chance: "".join(make(chance) for _ in range(chance.randint(least, largest))), 1 + size * largest

    def _bounds(self) -> tuple[int, int]:
        for sign, least, most in (("*", 0, _MOST), ("+", 1, _MOST), ("?", 0, 1)):
            if self._took(sign):
                return least, most
        end = self._pattern.find("}", self._at)
        if self.ended or self._pattern[self._at] != "{" or end < 0:
            return 1, 1
        low, comma, high = self._pattern[self._at + 1 : end].partition(",")
        if not low.isdecimal() or not (high.isdecimal() or high == ""):
            return 1, 1  # a brace that stands for itself
        self._at = end + 1
        if len(low) > _DIGITS or len(high) > _DIGITS:
            raise UnreadableError(self._pattern)
        return int(low), int(high) if high else (_MOST if comma else int(low))

    def _atom(self) -> _Sized:
        char = self._next()
        match char:
            case "^" | "$":
                return _always(""), 1
            case ".":
                return lambda chance: chance.choice(_WORD), 1
            case "(":
                return self._group()
            case "[":
                chars = self._class()
                return lambda chance: chance.choice(chars), 1
            case "\\":
                chars = self._escape()
                return (lambda chance: chance.choice(chars)) if chars else _always(""), 1
            case "*" | "+" | "?" | ")":
                raise UnreadableError(self._pattern)
        return _always(char), 1

    def _group(self) -> _Sized:
        if self._took("?"):
            if self._took("<") and self._pattern[self._at : self._at + 1] not in ("=", "!"):
                self._at = self._pattern.find(">", self._at) + 1 or len(self._pattern)
            elif not self._took(":"):
                raise UnreadableError(self._pattern)
        inner = self.alternatives()
        if not self._took(")"):
            raise UnreadableError(self._pattern)
        return inner

    def _escape(self) -> str:
        """The characters that an escape stands for; none for the edge of a word."""
        char = self._next()
        if char.lower() in _CLASSES:
            inside = _CLASSES[char.lower()]
            return inside if char.islower() else _without(inside)
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

    def _class(self) -> str:
        """The characters of a class, in a fixed order."""
        negated = self._took("^")
        chars = ""
        while not self._took("]"):
            low = self._member()
            if len(low) == 1 and self._pattern.startswith("-", self._at) and self._pattern[self._at + 1 :][:1] != "]":
                self._at += 1
                high = self._member()
                if len(high) != 1 or high < low or ord(high) - ord(low) > 0xFFFF:
                    raise UnreadableError(self._pattern)
                low = "".join(map(chr, range(ord(low), ord(high) + 1)))
            self._wide += len(low)
            if self._wide > _WIDEST:
                raise UnreadableError(self._pattern)
            chars += low
        chosen = _without(chars) if negated else chars
        if not chosen:
            raise UnreadableError(self._pattern)
        return chosen

    def _member(self) -> str:
        char = self._next()
        if char != "\\":
            return char
        return "\b" if self._took("b") else self._escape()


def _always(text: str) -> _Make:
    return lambda _chance: text


def _without(chars: str) -> str:
    """Letters, digits and what else can be seen, but for `chars`."""
    return "".join(char for char in _WORD + _PRINTABLE if char not in chars)
