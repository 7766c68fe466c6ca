"""Merges all of a schema's constraints on one value, following references.

The result can be weaker than the schema, but never stricter.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from urllib.parse import unquote

Json: TypeAlias = Any
Schema: TypeAlias = Mapping[str, Any]

_ALL: Final = frozenset({"null", "boolean", "integer", "number", "string", "array", "object"})
_MAYBE: Final = ("then", "else")
_DEEPEST: Final = 64


@dataclass(slots=True)
class View:
    """The known constraints on a value.

    Attributes:
        types: The possible types.
        values: The `enum` or `const` values. `None` if neither is set.
        properties: The schemas of each property.
        required: The required properties.
        more: The schemas of additional properties. False if they are forbidden, `None` if unspecified.
        items: The schemas of the items. `None` if unspecified.
        is_tuple: Whether items have schemas by index.
        choices: The alternatives of each `anyOf` and `oneOf`.
        words: Other keywords, such as `description` and limits.
        references: The resolved references.
    """

    types: frozenset[str] = _ALL
    values: list[Json] | None = None
    properties: dict[str, list[Json]] = field(default_factory=dict)
    required: dict[str, None] = field(default_factory=dict)
    more: list[Json] | bool | None = None
    items: list[Json] | None = None
    is_tuple: bool = False
    choices: list[Sequence[Json]] = field(default_factory=list)
    words: dict[str, Json] = field(default_factory=dict)
    references: frozenset[str] = frozenset()
    is_impossible: bool = False

    @property
    def is_anything(self) -> bool:
        """True if the type is unknown."""
        return self.types == _ALL and self.values is None and not self.choices


class SchemaMerger:
    """Merges the subschemas of one root."""

    def __init__(self, root: Json) -> None:
        """Create a merger that resolves references in a root schema."""
        self._root = root
        dialect = root.get("$schema") if isinstance(root, dict) else None
        # Before 2019-09, keywords next to a reference are ignored (draft-07, section 8.3).
        self._hides = isinstance(dialect, str) and "json-schema.org/draft-0" in dialect

    def view(self, schemas: Sequence[Json], followed: frozenset[str] = frozenset()) -> View:
        """Merge several schemas' constraints on a value. `followed` are the references in outer schemas."""
        merged = View(references=followed)
        for part in self._list_parts(schemas, merged, 0):
            _add(merged, part)
        if merged.types == _ALL and merged.values is None:
            if merged.properties or merged.more is not None:
                merged.types = frozenset({"object"})
            elif merged.items is not None or merged.is_tuple:
                merged.types = frozenset({"array"})
        return merged

    def _list_parts(self, schemas: Sequence[Json], view: View, depth: int) -> Iterator[Schema]:
        for schema in schemas:
            if schema is False:
                view.is_impossible = True
            if not isinstance(schema, dict) or depth > _DEEPEST:
                continue
            reference = schema.get("$ref")
            if isinstance(reference, str):
                view.references |= {reference}
                yield from self._list_parts([self._follow(reference)], view, depth + 1)
                if self._hides:
                    continue
            yield schema
            yield from self._list_parts(schema.get("allOf") or (), view, depth + 1)
            # A branch might not apply, so use its properties but not its requirements.
            for keyword in _MAYBE:
                for part in self._list_parts([schema.get(keyword)], view, depth + 1):
                    yield {"properties": part.get("properties") or {}}
            for below in (schema.get("dependentSchemas") or {}).values():
                for part in self._list_parts([below], view, depth + 1):
                    yield {"properties": part.get("properties") or {}}

    def _follow(self, reference: str) -> Json:
        here = self._root
        if reference != "#" and not reference.startswith("#/"):
            return {}
        for step in reference[1:].split("/")[1:]:
            key = unquote(step).replace("~1", "/").replace("~0", "~")
            if isinstance(here, list) and key.isdecimal() and int(key) < len(here):
                here = here[int(key)]
            elif isinstance(here, dict) and key in here:
                here = here[key]
            else:
                return {}
        return here


_TAKEN: Final = frozenset(
    {"type", "enum", "const", "properties", "required", "additionalProperties", "patternProperties", "items"}
    | {"prefixItems", "anyOf", "oneOf", "allOf", "$ref", "$defs", "definitions", "then", "else", "if"}
    | {"dependentSchemas", "unevaluatedProperties", "unevaluatedItems", "$schema", "$id", "examples", "title"}
)


def _add(view: View, part: Schema) -> None:
    types = part.get("type")
    if types is not None:
        named = frozenset([types] if isinstance(types, str) else types)
        view.types &= named | ({"integer"} if "number" in named else frozenset())
        if "number" in named and "number" in view.types and "integer" not in named:
            view.types -= {"integer"}
    values = part.get("enum", [part["const"]] if "const" in part else None)
    if isinstance(values, list):
        keys = [_key(value) for value in values]
        view.values = list(values) if view.values is None else [value for value in view.values if _key(value) in keys]
    for name, below in (part.get("properties") or {}).items():
        known = view.properties.setdefault(name, [])
        if below not in known:
            known.append(below)
    view.required |= dict.fromkeys(part.get("required") or ())
    _add_more(view, part)
    items = part.get("items")
    view.is_tuple |= isinstance(items, list) or "prefixItems" in part
    if isinstance(items, dict | bool):
        view.items = [*(view.items or ()), items]
    view.choices += [part[keyword] for keyword in ("anyOf", "oneOf") if isinstance(part.get(keyword), list)]
    for keyword, value in part.items():
        if keyword not in _TAKEN:
            view.words.setdefault(keyword, value)


def _add_more(view: View, part: Schema) -> None:
    patterns = [*(part.get("patternProperties") or {}).values()]
    more = part.get("additionalProperties")
    if patterns and more is False:
        more = {"anyOf": patterns}
    elif patterns:
        more = True
    if more is False:
        view.more = False
    elif more is not None and view.more is not False:
        known = view.more if isinstance(view.more, list) else []
        view.more = [*known, more]


def _key(value: Json) -> str:
    return json.dumps(value, sort_keys=True)
