"""Searches for an instance that one schema accepts and another rejects.

The search is short and deterministic. Failure to find an instance proves nothing.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, product
from typing import TYPE_CHECKING, Final

from stubwright.jsonschema.instances.parts import Subschema
from stubwright.jsonschema.instances.search import Budget, ExhaustedError, Search

if TYPE_CHECKING:
    from stubwright.diff.subsumption.proof import SchemaValidator
    from stubwright.ir import Json
    from stubwright.jsonschema.instances.violations import Group

_TRIES: Final = 400
_ROUNDS: Final = (400, 4_000)
"""The step limits for each depth and hint, in the first and in the second round."""

_LEVELS: Final = (2, 4, 10)
"""The instance depths to try, shallowest first, since a recursive reference could use up all steps."""


def find(
    accepting: Sequence[SchemaValidator], rejecting: Sequence[SchemaValidator], hints: Sequence[Json], budget: Budget
) -> tuple[Json] | None:
    """Search for a value that every schema in `accepting` accepts and every schema in `rejecting` rejects.

    Return the value in a one-element tuple, or None if the search finds none within the budget.
    """
    whole = (
        *(Subschema(validator.schema, validator) for validator in accepting),
        *(Subschema(validator.schema, validator).negate(validator.schema) for validator in rejecting),
    )
    different = {json.dumps(hint, default=str): hint for hint in hints}.values()  # decimals are exact multiples
    hinted = [(Subschema(hint, replace(accepting[0], schema=hint)),) for hint in different]
    groups = (*hinted, whole)
    unfinished = [*product(_LEVELS, range(len(groups)))]
    for steps in _ROUNDS:
        places, unfinished = unfinished, []
        complete: set[int] = set()
        for levels, place in places:
            if place in complete:
                continue
            search = Search(steps, levels, budget)
            for value in islice(_list_values(groups[place], search), _TRIES):
                accepted = all(validator.accepts(value) for validator in accepting)
                if accepted and not any(validator.accepts(value) for validator in rejecting):
                    return (value,)
            if not search.is_cut:  # a deeper search would find the same values
                complete.add(place)
            if search.steps <= 0:
                unfinished.append((levels, place))
    return None


def _list_values(group: Group, search: Search) -> Iterator[Json]:
    try:
        yield from search.find_values(group)
    except (ExhaustedError, RecursionError):
        return


def show(value: Json, limit: int = 160) -> str:
    """Format an instance for a message: one line of JSON, truncated to `limit` characters."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
