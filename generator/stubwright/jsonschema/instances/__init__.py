"""Makes values that a schema accepts, from a seed.

`search` makes them, as it makes the instances for `diff`; `likely` asks for realistic ones. The server's validator
checks each value before it is returned. The same seed results in the same value, under any hash seed.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice, repeat
from random import Random
from typing import TYPE_CHECKING, Any, Final

from stubwright.jsonschema.formats import choose_meaning
from stubwright.jsonschema.instances.heuristics import LONGEST, ExampleValues
from stubwright.jsonschema.instances.parts import Judge, Subschema
from stubwright.jsonschema.instances.search import Budget, ExhaustedError, Search
from stubwright_runtime.schema.validation import Validator

if TYPE_CHECKING:
    from stubwright.ir import Json

MOST: Final = 20_000
"""The maximum number of steps of a search: a value, a property, or some characters each.

All searches together have half as many again.
"""

_BARE: Final = (False, True, MOST // 40, 20)
_KINDS: Final = ((True, False, MOST, 20), (False, False, MOST, 20), _BARE)
"""Searches, from cautious to bold.

Each has whether it prefers examples and whole objects, whether it omits optional parts, its steps, and its number.
"""

_TRIES: Final = 10
"""The maximum number of values to try in each search."""

_LEVELS: Final = 40
_LEVELS_WITHOUT_LIKENESS: Final = (2, 6)


class UnsatisfiableError(Exception):
    """The search found no value that the schema accepts; the text explains why."""


class TooLargeError(UnsatisfiableError):
    """All tried values are too large."""


def make(
    schema: Any, seed: str, *, formats: bool = False, exact: bool = False, likely: bool = False, bare: bool = False
) -> Any:
    """Return a value that the schema accepts.

    Args:
        schema: The schema, with all its references.
        seed: The seed of the value, in addition to the schema.
        formats: Whether `format` is asserted.
        exact: Whether formats with Python types only accept values that these represent exactly.
        likely: Whether the value must be realistic; otherwise any valid one will do.
        bare: Whether to omit all optional parts, which is faster.

    Raises:
        UnsatisfiableError: There is none.
        ValueError: It is not a schema.
    """
    validator = Validator(schema, formats=formats, exact=exact)
    whole = Subschema(schema, Judge(schema, choose_meaning(formats=formats, exact=exact)))
    is_large = False
    for search in _list_searches(seed, likely=likely, bare=bare):
        for value in islice(_list_values(whole, search), _TRIES):
            if validator.accepts(value):
                return value
        is_large = is_large or search.is_large
    if is_large:
        raise TooLargeError(f"it asks for more than {MOST:,} values, or for a text of more than {LONGEST:,} characters")
    raise UnsatisfiableError("none of the tried values is valid")


def _list_searches(seed: str, *, likely: bool, bare: bool) -> Iterator[Search]:
    budget = Budget(MOST + MOST // 2)
    kinds = chain.from_iterable(repeat(kind[:3], kind[3]) for kind in ((_BARE, *_KINDS) if bare else _KINDS))
    for number, (is_exemplary, is_bare, steps) in enumerate(kinds):
        likeness = ExampleValues(Random(f"{seed}/{number}"), is_exemplary, is_bare)  # noqa: S311
        # Earlier searches may have used up the shared steps.
        taken = Budget(steps) if is_bare else budget
        # Values that deliberately break an alternative of `oneOf` are valid, but unrealistic.
        yield Search(steps, _LEVELS, taken, likeness=likeness, excludes=not likely, is_weighed=True)
    for levels in () if likely else _LEVELS_WITHOUT_LIKENESS:
        yield Search(MOST // 10, levels, Budget(MOST // 10), is_weighed=True)


def _list_values(whole: Subschema, search: Search) -> Iterator[Json]:
    try:
        yield from search.find_values((whole,))
    except (ExhaustedError, RecursionError):
        return
