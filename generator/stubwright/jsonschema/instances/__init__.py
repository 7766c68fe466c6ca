"""Generates valid instances of a schema, reproducibly from a seed.

The server's validator checks each value.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice, repeat
from random import Random
from typing import TYPE_CHECKING, Any, Final

from stubwright.jsonschema.formats import choose_meaning
from stubwright.jsonschema.instances.heuristics import LONGEST, ExampleValues
from stubwright.jsonschema.instances.parts import SchemaValidator, Subschema
from stubwright.jsonschema.instances.search import Budget, ExhaustedError, Search
from stubwright_runtime.schema.validation import Validator

if TYPE_CHECKING:
    from stubwright.ir import Json

MOST: Final = 20_000
"""The maximum number of steps in a search: a value, a property, or some characters. All searches share 1.5 times that.
"""

_BARE: Final = (False, True, MOST // 40, 20)
_SEARCHES: Final = ((True, False, MOST, 20), (False, False, MOST, 20), _BARE)
"""The searches, in order: whether to prefer examples and complete objects, whether to omit optional parts, the maximum
number of steps, and the number of attempts.
"""

_MAX_CANDIDATES: Final = 10
"""The maximum number of values that a search tries."""

_LEVELS: Final = 40
_LEVELS_WITHOUT_HEURISTICS: Final = (2, 6)


class UnsatisfiableError(Exception):
    """The search found no valid value. The message explains why."""


class TooLargeError(UnsatisfiableError):
    """All valid candidates exceed the size limits."""


def make(
    schema: Any, seed: str, *, formats: bool = False, exact: bool = False, likely: bool = False, bare: bool = False
) -> Any:
    """Generate a value that the schema accepts.

    Args:
        schema: The schema, with all referenced schemas.
        seed: The random seed. The same seed gives the same value.
        formats: Whether the value must satisfy each `format`.
        exact: Whether a Python type must represent each formatted string exactly.
        likely: Whether to generate realistic values rather than edge cases.
        bare: Whether to omit all optional parts for speed.

    Raises:
        UnsatisfiableError: No value was found.
        ValueError: The schema is invalid.
    """
    validator = Validator(schema, formats=formats, exact=exact)
    whole = Subschema(schema, SchemaValidator(schema, choose_meaning(formats=formats, exact=exact)))
    is_large = False
    for search in _list_searches(seed, likely=likely, bare=bare):
        for value in islice(_list_values(whole, search), _MAX_CANDIDATES):
            if validator.accepts(value):
                return value
        is_large = is_large or search.is_large
    if is_large:
        raise TooLargeError(f"it requires more than {MOST:,} values, or a string of more than {LONGEST:,} characters")
    raise UnsatisfiableError("no candidate is valid")


def _list_searches(seed: str, *, likely: bool, bare: bool) -> Iterator[Search]:
    budget = Budget(MOST + MOST // 2)
    attempts = chain.from_iterable(repeat(kind[:3], kind[3]) for kind in ((_BARE, *_SEARCHES) if bare else _SEARCHES))
    for number, (is_exemplary, is_bare, steps) in enumerate(attempts):
        heuristics = ExampleValues(Random(f"{seed}/{number}"), is_exemplary, is_bare)  # noqa: S311
        # Earlier searches may have used up the shared steps.
        taken = Budget(steps) if is_bare else budget
        # Values that deliberately violate an alternative of `oneOf` are valid, but unrealistic.
        yield Search(steps, _LEVELS, taken, heuristics=heuristics, excludes=not likely, counts_parts=True)
    for levels in () if likely else _LEVELS_WITHOUT_HEURISTICS:
        yield Search(MOST // 10, levels, Budget(MOST // 10), counts_parts=True)


def _list_values(whole: Subschema, search: Search) -> Iterator[Json]:
    try:
        yield from search.find_values((whole,))
    except (ExhaustedError, RecursionError):
        return
