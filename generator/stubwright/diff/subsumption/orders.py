"""Normalizes order where it has no meaning in schemas: in `enum`, `type`, `required` and alternatives."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from stubwright.ir import Json
    from stubwright.jsonschema.dialects import Dialect

_VALUES: Final = frozenset({"enum", "type", "required"})
_ALTERNATIVES: Final = frozenset({"allOf", "anyOf", "oneOf"})
_NAMED: Final = frozenset({"$defs", "definitions"})


def align(old: Json, new: Json, dialect: Dialect) -> Json:
    """Reorder the new schema's entries like the equal entries in the old schema, where order has no meaning."""
    # After a move, a reference such as `#/anyOf/1` would refer to another alternative.
    return _Aligner(dialect, may_move_alternatives=not any(map(_counts_alternatives, (old, new)))).align_schema(
        old, new
    )


def _counts_alternatives(schema: Json) -> bool:
    if isinstance(schema, dict):
        reference = schema.get("$ref")
        if isinstance(reference, str) and not _ALTERNATIVES.isdisjoint(reference.split("/")):
            return True
        return any(map(_counts_alternatives, schema.values()))
    return isinstance(schema, list) and any(map(_counts_alternatives, schema))


class _Aligner:
    def __init__(self, dialect: Dialect, *, may_move_alternatives: bool) -> None:
        self._dialect = dialect
        self._moved = _ALTERNATIVES if may_move_alternatives else frozenset[str]()

    def align_schema(self, old: Json, new: Json) -> Json:
        """Reorder the new schema's entries to match the order of the equal entries in the old schema."""
        if not isinstance(old, dict) or not isinstance(new, dict):
            return new
        return {keyword: self._align_value(keyword, old.get(keyword), value) for keyword, value in new.items()}

    def _align_value(self, keyword: str, old: Any, new: Any) -> Any:
        dialect = self._dialect
        if isinstance(old, list) and isinstance(new, list):
            if keyword in _VALUES:
                return [new[index] for index in _match(list(map(_to_text, old)), list(map(_to_text, new)))]
            if keyword in self._moved:
                order = _match(list(map(self._to_canonical_text, old)), list(map(self._to_canonical_text, new)))
                new = [new[index] for index in order]
            if keyword in dialect.listed:
                pairs = [self.align_schema(*pair) for pair in zip(old, new, strict=False)]
                return [*pairs, *new[len(pairs) :]]
        elif isinstance(old, dict) and isinstance(new, dict):
            if keyword in dialect.named | _NAMED:
                return {name: self.align_schema(old.get(name), inner) for name, inner in new.items()}
            if keyword in dialect.single:
                return self.align_schema(old, new)
        return new

    def _to_canonical_text(self, schema: Json) -> str:
        """Return the same string for schemas that differ only in meaningless order."""
        return _to_text(self._sort(schema))

    def _sort(self, schema: Json) -> Json:
        if not isinstance(schema, dict):
            return schema
        dialect, sorted_schema = self._dialect, dict[str, Any]()
        for keyword, value in schema.items():
            if isinstance(value, list) and keyword in dialect.listed | _VALUES:
                inner = [self._sort(item) if keyword in dialect.listed else item for item in value]
                sorted_schema[keyword] = sorted(inner, key=_to_text) if keyword in _VALUES | self._moved else inner
            elif isinstance(value, dict) and keyword in dialect.named | _NAMED:
                sorted_schema[keyword] = {name: self._sort(inner) for name, inner in value.items()}
            else:
                sorted_schema[keyword] = self._sort(value) if keyword in dialect.single else value
        return sorted_schema


def _match(old: Sequence[str], new: Sequence[str]) -> list[int]:
    """Return the new entries' indexes, in the order of the equal old entries.

    New entries without an equal old entry fill the positions of removed entries.
    """
    places: defaultdict[str, list[int]] = defaultdict(list)
    for index, text in enumerate(new):
        places[text].append(index)
    matched = [places[text].pop() if places.get(text) else None for text in old]
    rest = iter(sorted(index for indices in places.values() for index in indices))
    filled = [next(rest, None) if index is None else index for index in matched]
    return [*(index for index in filled if index is not None), *rest]


def _to_text(value: Any) -> str:
    return json.dumps(value, sort_keys=True)
