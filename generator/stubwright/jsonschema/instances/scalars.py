"""Generates strings and numbers just inside and just outside each keyword's limits."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from random import Random
from typing import Any, Final, TypeGuard

from stubwright.jsonschema import patterns
from stubwright.jsonschema.formats import FORMATS

_TEXTS: Final = (
    *("a", "", "A", "1", "ab", "abc", "x-1", "a b", "é", "2020-01-01", "2020-01-01T00:00:00Z", "a@example.com"),
    *("https://example.com", "127.0.0.1", "123e4567-e89b-12d3-a456-426614174000", "/a/b", "1.2.3", "zz", "Aa0_-."),
    *("Aa1!Aa1!Aa1!", "\n", "#", "x"),
)
_NUMBERS: Final = (0, 1, -1, 0.5, 2, 3, 10, 100, 0.1, -0.5, 7, 0.05, 0.001, 1e10, -1e10)
_LONGEST: Final = 20_000
_TAIL: Final = 100
"""The number of additional distinct values, for lists with unique items."""

_SAMPLES: Final = 8
"""The number of strings for one pattern."""

_MORE: Final = (1, 2, 10, 100)
"""The numbers of characters to add to a string that matches a pattern."""

_CHARACTERS: Final = "aA0-_./ +@:é\n"
"""A character of each class that patterns can distinguish."""

_MULTIPLES: Final = 4
"""The number of multiples on each side of a bound."""

_LOOK_AROUND: Final = re.compile(r"\(\?<?[=!]((?:[^()\\]|\\.|\([^()]*\))*)\)")
_LOWER: Final = ("minimum", "exclusiveMinimum")
_UPPER: Final = ("maximum", "exclusiveMaximum")


def list_texts(keywords: Iterable[Mapping[str, Any]]) -> Iterator[str]:
    """Yield candidate strings for the keywords, possibly with duplicates."""
    stated = list(keywords)
    sizes = sorted({size for each in stated for size in _list_sizes(each)})
    texts = [text for each in stated for text in list_matching(each, Random(0))]  # noqa: S311
    yield from texts
    yield from _TEXTS
    for size in sizes:
        yield from ("a" * size, "1" * size, "A" * size)
    for text in dict.fromkeys(texts):
        for size in (*sizes, *(len(text) + more for more in _MORE)):
            yield from _resize(text, size)
        yield from (f"{text}!", f"!{text}", text[:-1], text.upper(), text.lower(), f"{text}{text}", f"a{text}")
    for text in dict.fromkeys(texts):
        yield from (text[:at] + char + text[at + 1 :] for at in _list_positions(text) for char in _CHARACTERS)
    yield from (f"a{number}" for number in range(_TAIL))


def _list_sizes(keywords: Mapping[str, Any]) -> Iterator[int]:
    for keyword in ("minLength", "maxLength"):
        size = keywords.get(keyword)
        if _is_number(size) and size < _LONGEST:
            yield from (each for each in (int(size) - 1, int(size), int(size) + 1) if each >= 0)


def list_matching(keywords: Mapping[str, Any], chance: Random, rounds: int = 1) -> Iterator[str]:
    """Yield strings for a pattern, shortest first in each round, and strings for a format."""
    pattern, form = keywords.get("pattern"), keywords.get("format")
    for _ in range(rounds):
        if isinstance(pattern, str):
            yield from sorted((_make_text(pattern, chance) for _ in range(_SAMPLES)), key=len)
            yield from _list_for_lookarounds(pattern, chance)
        if isinstance(form, str) and form in FORMATS:
            yield FORMATS[form](chance)


def _list_for_lookarounds(pattern: str, chance: Random) -> Iterator[str]:
    """Yield strings for a pattern's lookarounds, alone and at both ends of a match."""
    rest = _make_text(pattern, chance)
    for look in _LOOK_AROUND.finditer(pattern):
        seen = _make_text(look[1].removeprefix("^").removesuffix("$"), chance)
        yield from (seen, f"{seen}{rest}", f"{rest}{seen}")


def _make_text(pattern: str, chance: Random) -> str:
    """Generate a string for a pattern, ignoring lookarounds if needed.

    Return an empty string for unsupported patterns.
    """
    for text in (pattern, _LOOK_AROUND.sub("", pattern)):
        try:
            return patterns.make_text(text, chance)
        except patterns.UnreadableError:
            continue
    return ""


def _resize(text: str, size: int) -> Iterator[str]:
    if size <= len(text):
        yield text[:size]
        yield text[len(text) - size :]
        return
    for at in _list_positions(text):
        yield text[:at] + text[at] * (size - len(text)) + text[at:]


def _list_positions(text: str) -> list[int]:
    return sorted({0, len(text) // 2, len(text) - 2, len(text) - 1} & {*range(len(text))})


def list_numbers(keywords: Iterable[Mapping[str, Any]]) -> Iterator[float]:
    """Yield candidate numbers for the keywords: near each bound, and multiples of each step."""
    stated = list(keywords)
    bounds = sorted({each[word] for each in stated for word in (*_LOWER, *_UPPER) if _is_number(each.get(word))})
    named = {Fraction(str(each["multipleOf"])) for each in stated if _is_number(each.get("multipleOf"))}
    steps = sorted(step for step in named if step > 0)
    if len(steps) > 1:
        steps.append(find_common_multiple(steps))
    multiples = [
        (math.floor(bound / step) + more) * step
        for step in reversed(steps)
        for bound in (*(Fraction(str(bound)) for bound in bounds), Fraction(0), Fraction(step.numerator))
        for more in (*range(1 - _MULTIPLES, _MULTIPLES + 1), Fraction(1, 2))
    ]
    # Exact floats first: validators may disagree on others.
    yield from map(_to_number, sorted(multiples, key=lambda value: Fraction(float(value)) != value))
    for bound in bounds:
        yield from (bound, bound + 1, bound - 1, bound + 0.5, bound - 0.5, bound + 0.001, bound - 0.001)
        if isinstance(bound, float):
            yield from (math.floor(bound), math.ceil(bound))
    yield from ((low + high) / 2 for low, high in pairwise(bounds))
    yield from _NUMBERS
    yield from range(_TAIL)


def find_common_multiple(steps: Iterable[Fraction]) -> Fraction:
    """Return the least common multiple."""
    stated = list(steps)
    return Fraction(math.lcm(*(step.numerator for step in stated)), math.gcd(*(step.denominator for step in stated)))


def _to_number(value: Fraction) -> float:
    return int(value) if value.denominator == 1 else float(value)


def _is_number(value: Any) -> TypeGuard[float]:
    # Beyond 2**53, floats cannot represent all integers.
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 2**53
