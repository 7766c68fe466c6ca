"""Proves that a regular expression matches every string that another regular expression matches.

A pattern with a single character class (`.`, `[a-z]`, `\\S+`) matches every string that contains such a character
(ECMA-262, 22.2), so a pattern that requires one of these characters implies it. Other patterns are compared as text.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache
from typing import Final, TypeAlias

_Ranges: TypeAlias = tuple[tuple[int, int], ...]

_LARGEST: Final = 0x10FFFF
_TERMINATORS: Final[_Ranges] = ((0x0A, 0x0A), (0x0D, 0x0D), (0x2028, 0x2029))
_CONTROLS: Final = {"t": 9, "n": 10, "v": 11, "f": 12, "r": 13}
_QUANTIFIER: Final = re.compile(r"(?:([*?])|(\+)|\{([0-9]+)(?:,[0-9]*)?\})\??")
_HEX: Final = re.compile(r"x([0-9A-Fa-f]{2})|u([0-9A-Fa-f]{4})|u\{([0-9A-Fa-f]+)\}")
_LARGEST_PATTERN: Final = 2_000
_DEEPEST: Final = 20


class _UnreadableError(Exception):
    """The pattern has an unsupported part."""


def implies(pattern: str, other: str) -> bool:
    """Return whether `other` provably matches every string that `pattern` matches."""
    if pattern == other:
        return True
    wanted = _read_single_class(other)
    if wanted is None:
        return False
    return any(_is_subset(ranges, wanted) for ranges in _list_required(pattern))


@lru_cache(256)
def _read_single_class(pattern: str) -> _Ranges | None:
    reader = _Reader(pattern)
    try:
        ranges = reader.read_class()
    except _UnreadableError:
        return None
    return ranges if pattern[reader.at :] in ("", "+", "+?", "{1}", "{1,}") else None


@lru_cache(256)
def _list_required(pattern: str) -> tuple[_Ranges, ...]:
    """Return character classes such that every match contains a character from each class."""
    if len(pattern) > _LARGEST_PATTERN:
        return ()
    reader = _Reader(pattern)
    try:
        required = reader.read_alternatives(0)
    except _UnreadableError:
        return ()
    return required if reader.at == len(pattern) else ()


@dataclass
class _Reader:
    pattern: str
    at: int = 0

    def read_alternatives(self, depth: int) -> tuple[_Ranges, ...]:
        """Parse `a|b`. Return the required classes: for several alternatives, the union of one class from each."""
        if depth > _DEEPEST:
            raise _UnreadableError
        alternatives = [self._read_sequence(depth)]
        while self._accept("|"):
            alternatives.append(self._read_sequence(depth))
        if len(alternatives) == 1:
            return alternatives[0]
        if not all(alternatives):
            return ()
        return (_merge([pair for classes in alternatives for pair in min(classes, key=_count)]),)

    def _read_sequence(self, depth: int) -> tuple[_Ranges, ...]:
        required: list[_Ranges] = []
        while self.at < len(self.pattern) and self.pattern[self.at] not in "|)":
            part = self._read_part(depth)
            quantifier = _QUANTIFIER.match(self.pattern, self.at)
            least = 1
            if quantifier:
                self.at = quantifier.end()
                least = 0 if quantifier[1] else int(quantifier[3] or 1)
            if least:
                required += part
        return tuple(required)

    def _read_part(self, depth: int) -> tuple[_Ranges, ...]:
        if self._accept("^") or self._accept("$") or self._accept("\\b") or self._accept("\\B"):
            return ()
        if not self._accept("("):
            return (self.read_class(),)
        # For look-arounds, the validator uses another engine, where `.` and `\d` have other meanings.
        if self._accept("?") and not self._accept(":"):
            raise _UnreadableError
        required = self.read_alternatives(depth + 1)
        if not self._accept(")"):
            raise _UnreadableError
        return required

    def read_class(self) -> _Ranges:
        if self._accept("."):
            return _negate(_TERMINATORS)
        if self._accept("["):
            return self._read_members()
        char = self._next()
        if char in "*+?(){}|^$]":
            raise _UnreadableError
        return self._read_escape() if char == "\\" else ((ord(char), ord(char)),)

    def _read_members(self) -> _Ranges:
        is_negated = self._accept("^")
        if self.pattern.startswith("]", self.at):  # an empty class, or a literal `]` in other engines
            raise _UnreadableError
        reader = _Reader(self.pattern, self.at)
        ranges: list[tuple[int, int]] = []
        while not reader._accept("]"):
            low = reader._read_member()
            follows = self.pattern[reader.at : reader.at + 2]
            if follows[:1] == "-" and follows[1:] != "]":
                reader.at += 1
                high = reader._read_member()
                if len(low) != 1 or len(high) != 1 or low[0][0] != low[0][1] or high[0][0] != high[0][1]:
                    raise _UnreadableError
                low = ((low[0][0], high[0][1]),)
            ranges += low
        self.at = reader.at
        merged = _merge(ranges)
        return _negate(merged) if is_negated else merged

    def _read_member(self) -> _Ranges:
        char = self._next()
        # Some engines read `[` and doubled signs as set operations.
        if char == "[" or (char in "&-~" and self.pattern[self.at : self.at + 1] == char):
            raise _UnreadableError
        return self._read_escape() if char == "\\" else ((ord(char), ord(char)),)

    def _read_escape(self) -> _Ranges:
        hexadecimal = _HEX.match(self.pattern, self.at)
        if hexadecimal:
            self.at = hexadecimal.end()
            code = int(hexadecimal[1] or hexadecimal[2] or hexadecimal[3], 16)
            if 0xD800 <= code <= 0xDFFF or code > _LARGEST:
                raise _UnreadableError
            return ((code, code),)
        char = self._next()
        if char in _CONTROLS:
            return ((_CONTROLS[char], _CONTROLS[char]),)
        if char in _CLASSES:
            return _CLASSES[char]
        if char.isalnum() or char == "_":
            raise _UnreadableError
        return ((ord(char), ord(char)),)

    def _next(self) -> str:
        if self.at >= len(self.pattern):
            raise _UnreadableError
        self.at += 1
        return self.pattern[self.at - 1]

    def _accept(self, expected: str) -> bool:
        matches = self.pattern.startswith(expected, self.at)
        self.at += len(expected) * matches
        return matches


def _merge(ranges: list[tuple[int, int]]) -> _Ranges:
    merged: list[tuple[int, int]] = []
    for low, high in sorted(ranges):
        if merged and low <= merged[-1][1] + 1:
            merged[-1] = merged[-1][0], max(high, merged[-1][1])
        else:
            merged.append((low, high))
    return tuple(merged)


def _negate(ranges: _Ranges) -> _Ranges:
    merged = _merge([*ranges])
    lows = [0, *(high + 1 for _, high in merged)]
    highs = [*(low - 1 for low, _ in merged), _LARGEST]
    return tuple((low, high) for low, high in zip(lows, highs, strict=True) if low <= high)


_NAMED: Final[Mapping[str, _Ranges]] = {
    "d": ((0x30, 0x39),),
    "w": ((0x30, 0x39), (0x41, 0x5A), (0x5F, 0x5F), (0x61, 0x7A)),
    "s": (
        *((0x09, 0x0D), (0x20, 0x20), (0xA0, 0xA0), (0x1680, 0x1680), (0x2000, 0x200A)),
        *((0x2028, 0x2029), (0x202F, 0x202F), (0x205F, 0x205F), (0x3000, 0x3000), (0xFEFF, 0xFEFF)),
    ),
}
_CLASSES: Final = {**_NAMED, **{name.upper(): _negate(ranges) for name, ranges in _NAMED.items()}}
"""The characters of escapes (ECMA-262, 22.2.2.9)."""


def _count(ranges: _Ranges) -> int:
    return sum(high - low + 1 for low, high in ranges)


def _is_subset(ranges: _Ranges, wanted: _Ranges) -> bool:
    return all(any(start <= low and high <= end for start, end in wanted) for low, high in ranges)
