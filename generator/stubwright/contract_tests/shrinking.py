"""Shrinks values that fail a test, with the largest steps first."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from stubwright.contract_tests.cases import Arguments, Case

_PLAIN: Final = "a"
_SHORT: Final = 24
"""The maximum length of strings that are shrunk character by character. Longer strings are halved."""


def shrink(value: Any) -> Iterator[Any]:
    """Yield simpler versions of a JSON value, as ordered by `weigh`, each with one change."""
    weight = weigh(value)
    for smaller in _shrink(value):
        if weigh(smaller) < weight:
            yield smaller


async def minimize(case: Case, arguments: Arguments, tries: int, fails: Callable[[Case], Awaitable[bool]]) -> None:
    """Try smaller arguments that are also valid, or also invalid, and continue from arguments that still fail.

    Args:
        case: The failing case to start from.
        arguments: Classifies arguments as valid or invalid.
        tries: The maximum number of cases to try.
        fails: Tries a case, records it if it fails, and returns whether it fails.
    """
    is_smaller = True
    # As strings, since `1`, `1.0` and `True` are equal in Python but different arguments.
    tried = {repr(case.arguments)}
    while is_smaller:
        is_smaller = False
        for value in shrink(case.arguments):
            smaller = arguments.classify(value, case.words)
            if smaller is None or smaller.is_valid is not case.is_valid or repr(value) in tried:
                continue
            if len(tried) > tries:
                return
            tried.add(repr(value))
            smaller = replace(smaller, path=case.path, base=case.base)
            if await fails(smaller):
                case, is_smaller = smaller, True
                break


def weigh(value: Any) -> tuple[int, int, str]:
    """Return a sort key for a JSON value's complexity: the length as JSON, then the number of unusual characters."""
    text = json.dumps(value, sort_keys=True)
    return len(text), sum(character != _PLAIN for character in text), text


def _shrink(value: Any) -> Iterator[Any]:
    match value:
        case bool():
            yield False
        case int() | float():
            yield from _shrink_number(value)
        case str():
            yield from _shrink_text(value)
        case list():
            yield []
            middle = len(value) // 2
            yield from (value[:middle], value[middle:])
            for number, item in enumerate(value):
                yield value[:number] + value[number + 1 :]
                for smaller in _shrink(item):
                    yield [*value[:number], smaller, *value[number + 1 :]]
        case dict():
            yield {}
            for name in value:
                yield {key: inner for key, inner in value.items() if key != name}
            for name, inner in value.items():
                for smaller in _shrink(inner):
                    yield {**value, name: smaller}


def _shrink_number(number: float) -> Iterator[int]:
    yield from (0, 1)
    whole = int(number)
    yield from (abs(whole), whole)
    yield from (whole - whole // part for part in (2, 4, 8))
    yield whole - 1 if whole > 0 else whole + 1


def _shrink_text(text: str) -> Iterator[str]:
    yield ""
    yield text[:1]
    yield _PLAIN * len(text)
    middle = len(text) // 2
    yield from (text[:middle], text[middle:])
    yield from (text[: len(text) - len(text) // part] for part in (4, 8, 16))
    yield text[:-1]
    if len(text) <= _SHORT:
        for number, character in enumerate(text):
            yield text[:number] + text[number + 1 :]
            if character != _PLAIN:
                yield text[:number] + _PLAIN + text[number + 1 :]
