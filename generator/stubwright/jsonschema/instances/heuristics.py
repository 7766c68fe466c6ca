"""Heuristics for realistic values: words, numbers between their bounds, and optional properties."""

from __future__ import annotations

import math
from base64 import b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeGuard, TypeVar

from stubwright.jsonschema.formats import FORMATS, WORDS
from stubwright.jsonschema.instances.scalars import find_common_multiple, list_matching
from stubwright.jsonschema.references import KEYWORDS

if TYPE_CHECKING:
    from stubwright.ir import Json

_Item = TypeVar("_Item")

LONGEST: Final = 1_000_000
"""The maximum length of a string."""

_DEEP: Final = 5
"""The depth from which optional parts are omitted, to stop recursion."""

_SAMPLES: Final = 1_000
"""The number of candidates for a string or number."""

_MORE: Final = 2
"""The maximum number of optional items in a list."""

_SPAN: Final = 100
"""The range of unbounded numbers, in steps."""

_OPEN: Final = frozenset({*KEYWORDS, "properties", "items", "allOf", "anyOf", "oneOf", "prefixItems"})
"""Keywords with subschemas, which can recurse."""


@dataclass(frozen=True)
class ExampleValues:
    """A search's random choices.

    Attributes:
        chance: The source of randomness.
        is_exemplary: Whether to prefer examples and defaults, and include optional parts.
        is_bare: Whether to omit all optional parts.
    """

    chance: Random
    is_exemplary: bool = False
    is_bare: bool = False

    def includes_optional(self, depth: int) -> bool:
        """Return whether to include an optional part at this depth. Random unless a flag decides."""
        return not self.is_bare and depth <= _DEEP and (self.is_exemplary or self.chance.random() < 0.5)

    def shuffle(self, items: Sequence[_Item]) -> list[_Item]:
        """Return the items in random order."""
        return self.chance.sample(items, len(items))

    def order_types(self, names: Sequence[str], depth: int) -> list[str]:
        """Return types in the order to try: `null` last, or first if that stops a recursion."""
        shuffled = self.shuffle(names)
        if depth > _DEEP:
            return sorted(shuffled, key=lambda name: name != "null")
        return sorted(shuffled, key=lambda name: name == "null") if self.is_exemplary else shuffled

    def order_options(self, options: Sequence[Sequence[Any]], depth: int) -> list[Any]:
        """Return alternatives in the order to try. Beyond a depth limit, non-recursive alternatives come first."""
        shuffled = self.shuffle(options)
        return sorted(shuffled, key=lambda parts: any(map(_is_open, parts))) if depth > _DEEP else shuffled

    def list_suggested(self, schemas: Sequence[Mapping[str, Any]]) -> Iterator[Json]:
        """Yield the schemas' examples in random order, then their defaults."""
        for schema in schemas if self.is_exemplary else ():
            examples = schema.get("examples")
            yield from self.shuffle(examples) if isinstance(examples, list) else ()
            if "default" in schema and "const" not in schema and "enum" not in schema:
                yield schema["default"]

    def choose_size(self, least: int, most: int, placed: int, depth: int) -> int:
        """Return a random size for a list. The first `placed` items have separate schemas."""
        if depth > _DEEP or self.is_bare or not (self.is_exemplary or self.chance.random() < 0.7):
            return least
        wanted = max(least, 1, placed if self.is_exemplary else 0)
        return min(wanted if placed else self.chance.randint(wanted, max(wanted, least + _MORE)), most)

    def list_texts(self, keywords: Sequence[Mapping[str, Any]]) -> Iterator[str]:
        """Yield strings for the pattern or format, or words if there is none."""
        least = max(map(int, _get_numbers(keywords, "minLength")), default=0)
        most = min(map(int, _get_numbers(keywords, "maxLength")), default=LONGEST)
        for keyword in keywords:
            if isinstance(keyword.get("pattern"), str) or keyword.get("format") in FORMATS:
                yield from (
                    text for text in list_matching(keyword, self.chance, _SAMPLES // 10) if least <= len(text) <= most
                )
                return
        for number in range(_SAMPLES):
            if any(keyword.get("contentEncoding") == "base64" for keyword in keywords):
                length = min(max(least + 2, 8), max(most, 0)) // 4 * 4
                yield b64encode(self.chance.randbytes(length // 4 * 3)).decode()
                continue
            words = [self.chance.choice(WORDS) for _ in range(1 + number // len(WORDS) ** 2)]
            length = sum(map(len, words)) + len(words) - 1
            while length < least:
                words.append(self.chance.choice(WORDS))
                length += 1 + len(words[-1])
            yield " ".join(words)[:most]

    def list_numbers(self, keywords: Sequence[Mapping[str, Any]], *, is_integer: bool) -> Iterator[float]:
        """Yield random numbers between the bounds."""
        step = _find_step(keywords, is_integer=is_integer)
        low, high = _find_limits(keywords, step)
        first, last = math.ceil(low / step), math.floor(high / step)
        for _ in range(_SAMPLES if first <= last else 0):
            value = self.chance.randint(first, last) * step
            if is_integer or (value.denominator == 1 and value > 2**53):
                yield int(value)
            elif abs(value) < 2**1023:
                yield float(value)


def _is_open(part: Any) -> bool:
    return isinstance(part.schema, dict) and not _OPEN.isdisjoint(part.schema)


def _get_numbers(keywords: Sequence[Mapping[str, Any]], name: str) -> list[float]:
    return [keyword[name] for keyword in keywords if is_number(keyword.get(name))]


def _find_step(keywords: Sequence[Mapping[str, Any]], *, is_integer: bool) -> Fraction:
    """Return a step small enough to fit several values between the bounds."""
    named = map(to_fraction, _get_numbers(keywords, "multipleOf"))
    steps = [*(step for step in named if step > 0), *([Fraction(1)] if is_integer else [])]
    if steps:
        return find_common_multiple(steps)
    step = Fraction(1, 10)
    low, high = _find_limits(keywords, Fraction(0))
    while low < high < low + 4 * step:
        step /= 10
    return step


def _find_limits(keywords: Sequence[Mapping[str, Any]], step: Fraction) -> tuple[Fraction, Fraction]:
    low = max(_list_bounds(keywords, "minimum", "exclusiveMinimum", step), default=None)
    high = min(_list_bounds(keywords, "maximum", "exclusiveMaximum", -step), default=None)
    span = _SPAN * step
    if low is None:
        return (Fraction(0), span) if high is None else (min(Fraction(0), high - span), high)
    return low, low + span if high is None else high


def _list_bounds(
    keywords: Sequence[Mapping[str, Any]], name: str, exclusive: str, step: Fraction
) -> Iterator[Fraction]:
    """Yield the bounds. Move exclusive bounds inwards by a step."""
    for keyword in keywords:
        if is_number(keyword.get(name)):
            yield to_fraction(keyword[name]) + (step if keyword.get(exclusive) is True else 0)  # draft-04
        if is_number(keyword.get(exclusive)):
            yield to_fraction(keyword[exclusive]) + step


def to_fraction(value: float) -> Fraction:
    """Return the exact value of a number's decimal notation."""
    return Fraction(value) if isinstance(value, int) else Fraction(str(value))


def is_number(value: Any) -> TypeGuard[float]:
    """Return whether a value is a finite number."""
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < math.inf
