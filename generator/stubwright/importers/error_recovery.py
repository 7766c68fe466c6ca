"""Recovers from errors in documents that users cannot edit.

Merge keys are expanded, the last duplicate key wins, and examples with infinities or `.nan` are omitted.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Final

from stubwright.compile.syntax import yamltext
from stubwright.compile.syntax.positions import Lines
from stubwright.diagnostics.suggestions import shorten
from stubwright.jsonschema import dialects

if TYPE_CHECKING:
    from stubwright.compile.syntax.positions import Problem
    from stubwright.ir import Json

_MERGE: Final = "<<"
_NOT_FINITE: Final = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)|NaN|-?Infinity")
_NAMED: Final = frozenset({"schemas"}).union(*(dialect.named for dialect in dialects.DIALECTS))
"""Keys whose values are mappings from names: JSON Schema keywords and OpenAPI's `schemas`."""

_LISTED: Final = 10
"""The maximum number of lines listed in a note."""


class _UnrecoverableError(ValueError):
    """The document has errors that recovery does not cover."""


def recover_errors(
    text: str, problems: Sequence[Problem], name: str, *, is_json: bool
) -> tuple[Json, list[str]] | None:
    """Parse a document despite recoverable problems; return its value and notes, or None if it has other problems.

    Args:
        text: The document.
        problems: The problems that the strict parser found.
        name: The file, for messages.
        is_json: True for JSON, false for YAML.
    """
    kinds: dict[str, list[Problem]] = {"twice": [], "merged": [], "odd": []}
    for problem in problems:
        kind = _find_kind(text, problem)
        if kind is None:
            return None
        kinds[kind].append(problem)
    try:
        value = json.loads(text) if is_json else _merge(yamltext.read_lenient(text, any_keys=True))
        if kinds["odd"]:
            value = _drop_examples(value)
            _require_finite(value)
    except (_UnrecoverableError, RecursionError):
        return None
    return value, _describe(text, name, kinds)


def _find_kind(text: str, problem: Problem) -> str | None:
    written = text[problem.start : problem.end]
    if problem.code == "SW005":
        return "twice"
    if problem.code == "SW009" and written == _MERGE:
        return "merged"
    return "odd" if problem.code == "SW007" and _NOT_FINITE.fullmatch(written) else None


def _describe(text: str, name: str, kinds: dict[str, list[Problem]]) -> list[str]:
    lines = Lines(text)

    def find_places(kind: str) -> str:
        places_of_kind = kinds[kind]
        listed = []
        for problem in places_of_kind[:_LISTED]:
            line = f"line {lines.find_position(problem.start)[0]}"
            key = text[problem.start : problem.end].strip("\"'")
            listed.append(f"`{shorten(key)}` on {line}" if kind == "twice" else line)
        return ", ".join(
            [*listed, *([f"and {len(places_of_kind) - _LISTED} more"] if len(places_of_kind) > _LISTED else [])]
        )

    notes: list[tuple[str, Callable[[str], str]]] = [
        ("twice", lambda at: f"`{name}` has duplicate keys, and the last one was used: {at}"),
        (
            "merged",
            lambda at: f"`{name}` has merge keys (`<<`), which are not part of YAML 1.2; they were expanded: {at}",
        ),
        ("odd", lambda at: f"`{name}` has examples that JSON cannot represent; they were omitted: {at}"),
    ]
    return [describe(find_places(kind)) for kind, describe in notes if kinds[kind]]


def _merge(value: Json) -> Json:
    """Expand the merge keys in a value. A mapping's own entries take precedence."""
    if isinstance(value, list):
        return [_merge(item) for item in value]
    if not isinstance(value, dict):
        return value
    entries = {key: _merge(entry) for key, entry in value.items()}
    if _MERGE not in entries:
        return entries
    sources = entries.pop(_MERGE)
    merged: dict[str, Json] = {}
    for source in sources if isinstance(sources, list) else [sources]:
        if not isinstance(source, dict):
            raise _UnrecoverableError
        merged = {**source, **merged}  # the first duplicate wins (https://yaml.org/type/merge.html)
    return {**merged, **entries}


def _drop_examples(value: Json, *, is_named: bool = False) -> Json:
    """Remove examples with non-finite numbers.

    `is_named` is true if the keys of `value` are property names rather than keywords.
    """
    if isinstance(value, list):
        return [_drop_examples(item) for item in value]
    if not isinstance(value, dict):
        return value
    kept: dict[str, Json] = {}
    for key, entry in value.items():
        if key == "example" and not is_named and not _is_finite(entry):
            continue
        if key == "examples" and not is_named and isinstance(entry, list):
            entry = [item for item in entry if _is_finite(item)]
        elif key == "examples" and not is_named and isinstance(entry, dict):
            entry = {name: item for name, item in entry.items() if _is_finite(item)}
        kept[key] = _drop_examples(entry, is_named=not is_named and key in _NAMED)
    return kept


def _is_finite(value: Json) -> bool:
    if isinstance(value, dict):
        return all(map(_is_finite, value.values()))
    if isinstance(value, list):
        return all(map(_is_finite, value))
    return not isinstance(value, float) or math.isfinite(value)


def _require_finite(value: Json) -> None:
    if not _is_finite(value):
        raise _UnrecoverableError
