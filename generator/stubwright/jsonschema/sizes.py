"""Estimates the size of typical values from a schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stubwright.jsonschema.pointers import resolve_local

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stubwright.ir import Json

ITEMS: Final = 30
"""The assumed length of a list that is the whole response, about one page in most APIs."""

_INNER_ITEMS: Final = 3
"""The assumed length of a nested list."""

_NULL: Final = {"type": "null"}
_ENTRIES: Final = 3
_DEEPEST: Final = 8
_TEXT: Final = 24
_PROSE: Final = 400
_PROSE_NAMES: Final = frozenset(
    {"body", "bodyhtml", "bodytext", "content", "description", "diff", "html", "markdown", "message", "notes", "patch"}
    | {"text"}
)
"""Names of properties with long strings."""

_FORMATS: Final[Mapping[str, int]] = {
    "date": 12,
    "date-time": 22,
    "email": 24,
    "time": 10,
    "uri": 60,
    "uri-reference": 40,
    "uri-template": 90,
    "url": 60,
    "uuid": 38,
}
_PLAIN: Final[Mapping[str, int]] = {"boolean": 5, "integer": 6, "null": 4, "number": 6}


Known = dict[tuple[int, int], float]
"""Cached estimates, by schema `id()` and depth."""


def estimate_characters(schema: Json, known: Known | None = None) -> int:
    """Estimate the number of characters in a typical value.

    Args:
        schema: The schema, with its definitions.
        known: A cache that schemas with the same definitions can share.
    """
    return round(_Estimate(schema, {} if known is None else known).measure(schema, "", ()))


@dataclass(frozen=True, slots=True)
class _Estimate:
    root: Json
    known: Known

    def measure(self, schema: Json, name: str, above: tuple[str, ...], depth: int = 0) -> float:
        """Estimate the number of characters in the property `name`. `above` contains the references followed so far."""
        if not isinstance(schema, dict):
            return _TEXT
        if depth > _DEEPEST:
            return 2
        key = (id(schema), depth)
        if key not in self.known:
            self.known[key] = 2  # stops cycles
            self.known[key] = self._measure(schema, name, above, depth)
        return self.known[key]

    def _measure(self, schema: Mapping[str, Any], name: str, above: tuple[str, ...], depth: int) -> float:
        if "const" in schema:
            return _length(schema["const"])
        if isinstance(schema.get("enum"), list) and schema["enum"]:
            return sum(map(_length, schema["enum"])) / len(schema["enum"])
        parts = [self._follow(schema["$ref"], name, above, depth)] if isinstance(schema.get("$ref"), str) else []
        parts += [self.measure(part, name, above, depth) for part in _get_list(schema, "allOf")]
        for keyword in ("anyOf", "oneOf"):
            options = [self.measure(part, name, above, depth) for part in _get_list(schema, keyword) if part != _NULL]
            parts += [min(options)] if options else []  # an ID is more likely than a record if both are allowed
        kinds = schema.get("type")
        kind = next((str(each) for each in kinds if each != "null"), "null") if isinstance(kinds, list) else kinds
        if kind == "object" or "properties" in schema or isinstance(schema.get("additionalProperties"), dict):
            parts.append(self._measure_object(schema, above, depth))
        elif kind == "array" or "items" in schema:
            parts.append(self._measure_list(schema, name, above, depth))
        elif kind == "string":
            parts.append(_measure_text(schema, name))
        elif isinstance(kind, str) and kind in _PLAIN:
            parts.append(_PLAIN[kind])
        return sum(parts) if parts else _TEXT

    def _follow(self, reference: str, name: str, above: tuple[str, ...], depth: int) -> float:
        if reference in above:
            return 2
        try:
            target = resolve_local(self.root, reference)
        except LookupError:
            return 2
        return self.measure(target, name, (*above, reference), depth)

    def _measure_object(self, schema: Mapping[str, Any], above: tuple[str, ...], depth: int) -> float:
        properties = schema.get("properties")
        named = properties if isinstance(properties, dict) else {}
        total = 2.0 + sum(len(each) + 4 + self.measure(inner, each, above, depth + 1) for each, inner in named.items())
        rest = schema.get("additionalProperties")
        if isinstance(rest, dict) and not named:
            total += _ENTRIES * (_TEXT + self.measure(rest, "", above, depth + 1))
        return total

    def _measure_list(self, schema: Mapping[str, Any], name: str, above: tuple[str, ...], depth: int) -> float:
        count = ITEMS if depth <= 1 else _INNER_ITEMS
        least, most = schema.get("minItems"), schema.get("maxItems")
        count = max(count, least) if isinstance(least, int) else count
        count = min(count, most) if isinstance(most, int) else count
        return 2 + count * (1 + self.measure(schema.get("items"), name, above, depth + 1))


def _measure_text(schema: Mapping[str, Any], name: str) -> int:
    usual = _FORMATS.get(str(schema.get("format")), _TEXT)
    if "format" not in schema and "".join(filter(str.isalnum, name)).lower() in _PROSE_NAMES:
        usual = _PROSE
    most = schema.get("maxLength")
    return min(usual, most + 2) if isinstance(most, int) else usual


def _length(value: Json) -> int:
    return len(json.dumps(value, ensure_ascii=False))


def _get_list(schema: Mapping[str, Any], keyword: str) -> Sequence[Json]:
    parts = schema.get(keyword)
    return parts if isinstance(parts, list) else ()
