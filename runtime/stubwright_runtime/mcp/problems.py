"""Describes validation errors from the SDK's models.

Pydantic reports errors for each class in a union, such as content blocks. Errors for classes with another `type` are
omitted.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ..values.terminal import shorten

if TYPE_CHECKING:
    from pydantic import ValidationError
    from pydantic_core import ErrorDetails

_Place: TypeAlias = tuple[int | str, ...]

_MOST: Final = 3

_FUNCTION: Final = re.compile(r"function-(?:after|before|plain|wrap)\b")
"""Pydantic's names for validators in an error's path."""


def describe_problems(error: ValidationError) -> str:
    """Describe the problems briefly, without any values except an unknown `type`."""
    problems = error.errors(include_url=False)
    unfit: dict[_Place, dict[int | str, Any]] = {}
    for problem in problems:
        place = problem["loc"]
        if problem["type"] == "literal_error" and place[-1] == "type" and _is_class(place[-2:-1]):
            unfit.setdefault(place[:-2], {})[place[-2]] = problem["input"]
    lines: list[str] = []
    known: set[_Place] = set()
    for problem in problems:
        place = problem["loc"]
        unions = [place[:size] for size in range(len(place)) if place[:size] in unfit]
        if all(place[len(union)] not in unfit[union] for union in unions):
            known.update(unions)
            lines.append(f"{_show(place)}: {_word(problem)[:200]}")
    unknown = [
        f"{_show((*union, 'type'))}: {shorten(repr(next(iter(kinds.values()))))} is not known"
        for union, kinds in unfit.items()
        if union not in known
    ]
    return "; ".join([*unknown, *lines][:_MOST])


def _is_class(name: _Place) -> bool:
    """Return whether a step is a class name rather than an MCP key, which starts with a lower-case letter."""
    return bool(name) and str(name[0])[:1].isupper()


def _show(place: _Place) -> str:
    steps = (str(step) for step in place)
    return ".".join(step for step in steps if _FUNCTION.search(step) is None)[:200] or "it"


def _word(problem: ErrorDetails) -> str:
    """Return a problem's message, without the name of a discriminator function."""
    if not problem["type"].startswith("union_tag_"):
        return problem["msg"]
    context = problem.get("ctx", {})
    if not str(context.get("discriminator")).endswith("()"):
        return problem["msg"]
    expected = context.get("expected_tags")
    return "unknown type" if expected is None else f"it must be one of {expected}"
