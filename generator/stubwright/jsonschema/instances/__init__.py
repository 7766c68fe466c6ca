"""Values that a schema accepts, for a seed.

`search` makes it, as it makes the instances that `diff` looks for; `likely` describes what it looks like. Each value is
checked with the validator that servers use before it is given. The same seed gives the same value, under any hash seed.
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
"""Steps that a search may take: a value, a property, or some characters each; all have half as many again."""

_BARE: Final = (False, True, MOST // 40, 20)
_KINDS: Final = ((True, False, MOST, 20), (False, False, MOST, 20), _BARE)
"""Searches, the later ones bolder: whether they prefer examples and whole objects, whether they omit all that is
optional, steps, and how many there are."""

_TRIES: Final = 10
"""Values that are tried of each search."""

_LEVELS: Final = 40
_LEVELS_WITHOUT_LIKENESS: Final = (2, 6)


class UnsatisfiableError(Exception):
    """No value was found that the schema accepts; the text explains why."""


class TooLargeError(UnsatisfiableError):
    """Those that were tried are too large to be made."""


def make(
    schema: Any, seed: str, *, formats: bool = False, exact: bool = False, likely: bool = False, bare: bool = False
) -> Any:
    """Return a value that the schema accepts.

    Args:
        schema: The schema, with all that it refers to.
        seed: The seed of the value, next to the schema.
        formats: True if `format` is asserted.
        exact: True if formats that have types in Python accept only what these represent exactly.
        likely: True if the value has to look like a real one; otherwise any that fits will do.
        bare: True if nothing optional is wanted; such a value is found sooner.

    Raises:
        UnsatisfiableError: None was found.
        ValueError: It is no schema.
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
        # The searches before may have spent all that they share.
        taken = Budget(steps) if is_bare else budget
        # A value that breaks one alternative of `oneOf` on purpose fits, but is none that a caller would send.
        yield Search(steps, _LEVELS, taken, likeness=likeness, excludes=not likely, is_weighed=True)
    for levels in () if likely else _LEVELS_WITHOUT_LIKENESS:
        yield Search(MOST // 10, levels, Budget(MOST // 10), is_weighed=True)


def _list_values(whole: Subschema, search: Search) -> Iterator[Json]:
    try:
        yield from search.find_values((whole,))
    except (ExhaustedError, RecursionError):
        return
