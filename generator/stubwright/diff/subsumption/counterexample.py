"""An instance that one schema accepts and another rejects, where one is found.

The search is short and always the same; if it finds nothing, that proves nothing.
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
    from stubwright.diff.subsumption.proof import Judge
    from stubwright.ir import Json
    from stubwright.jsonschema.instances.violations import Group

_TRIES: Final = 400
_ROUNDS: Final = (400, 4_000)
"""Steps for one number of levels and one hint: all get a few before any gets many."""

_LEVELS: Final = (2, 4, 10)
"""Levels of the instances that are made: flat ones first, since a reference to itself takes all steps to the bottom."""


def find(
    accepting: Sequence[Judge], rejecting: Sequence[Judge], hints: Sequence[Json], budget: Budget
) -> tuple[Json] | None:
    """Return the first value found that each of `accepting` accepts and each of `rejecting` rejects, alone in a tuple.

    The search ends without one as soon as the budget is spent.
    """
    whole = (
        *(Subschema(judge.schema, judge) for judge in accepting),
        *(Subschema(judge.schema, judge).negate(judge.schema) for judge in rejecting),
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
                accepted = all(judge.accepts(value) for judge in accepting)
                if accepted and not any(judge.accepts(value) for judge in rejecting):
                    return (value,)
            if not search.is_cut:  # more levels would find the same
                complete.add(place)
            if search.steps <= 0:
                unfinished.append((levels, place))
    return None


def _list_values(group: Group, search: Search) -> Iterator[Json]:
    try:
        yield from search.find_values(group)
    except (ExhaustedError, RecursionError):  # alternatives inside alternatives
        return


def show(value: Json, limit: int = 160) -> str:
    """Return an instance in a message: JSON on one line, truncated if it is long."""
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= limit else f"{text[: limit - 1]}…"
