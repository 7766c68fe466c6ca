"""Describes schemas as tables, independently of HTML.

A referenced schema has one table, and all references link to the table, so that recursive schemas terminate.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from stubwright.diagnostics import Place
from stubwright.jsonschema import dialects
from stubwright.jsonschema.references import KEYWORDS, Folder, LocalTarget, Meta, Outline, get_at

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.diagnostics import Pointer
    from stubwright.jsonschema.references import Reference

DEEPEST: Final = 8
"""The maximum indentation of rows."""

_TEXTS: Final = frozenset({"description", "title", "type", "$schema", "$id", "id", "$anchor", "$dynamicAnchor"})
_REUSABLE: Final = frozenset({"$defs", "definitions"})
BOUNDS: Final[Mapping[str, str]] = {
    "minimum": "at least {}",
    "exclusiveMinimum": "more than {}",
    "maximum": "at most {}",
    "exclusiveMaximum": "less than {}",
    "multipleOf": "a multiple of {}",
    "minLength": "at least {} character{s}",
    "maxLength": "at most {} character{s}",
    "minItems": "at least {} item{s}",
    "maxItems": "at most {} item{s}",
    "minProperties": "at least {} key{s}",
    "maxProperties": "at most {} key{s}",
    "minContains": "at least {} of them",
    "maxContains": "at most {} of them",
}
"""The text for a bound, with its value as `{}` and the plural ending as `{s}`."""

_OPTIONS: Final = {"anyOf": "any of these", "oneOf": "one of these"}
_SINGLE: Final = {
    "additionalItems": "each later item",
    "unevaluatedItems": "each later item",
    "additionalProperties": "any other key",
    "unevaluatedProperties": "any other key",
    "contains": "some item",
    "contentSchema": "its content",
    "propertyNames": "each key",
    "not": "but not",
    "if": "if it fits",
    "then": "then also",
    "else": "else also",
}
_CLOSED: Final = {
    "additionalProperties": "no other keys",
    "unevaluatedProperties": "no other keys",
    "additionalItems": "no later items",
    "unevaluatedItems": "no later items",
    "items": "no items",
}
_NAMED: Final = {"dependentSchemas": "with {}", "dependencies": "with {}", "patternProperties": "keys like {}"}


@dataclass(frozen=True, slots=True)
class Anchor:
    """The anchor of a shared schema's table: its ID, and the schema's name."""

    id: str
    name: str


@dataclass(frozen=True, slots=True)
class Kind:
    """A word in a type, which can link to a table: by number (`target`) or by `anchor`."""

    text: str
    target: int | None = None
    anchor: Anchor | None = None


@dataclass(frozen=True, slots=True)
class Note:
    """A rule for a value: words, followed by JSON values."""

    words: str
    values: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Row:
    """A table row: a property if `is_key` is true, otherwise another part of the value that has a schema."""

    depth: int
    name: str
    is_key: bool
    required: bool
    kinds: tuple[Kind, ...]
    notes: tuple[Note, ...]
    title: str | None
    description: str | None


@dataclass(frozen=True, slots=True)
class Table:
    """A schema's table: the rules for the whole value, and a row for each part."""

    number: int
    name: str
    whole: Row
    rows: tuple[Row, ...]


def make_tables(
    schema: ir.Schema, anchors: Mapping[Pointer, Anchor] | None = None, start: Pointer = ()
) -> tuple[Table, ...]:
    """Return a schema's table, then the tables of schemas that it references, in order of first use.

    Args:
        anchors: The anchors of the parts that have a shared table, keyed by pointer.
        start: The pointer to the first table's schema.
    """
    return tuple(_Reader(schema, anchors or {}, start).read_tables())


def make_outline(schema: ir.Schema, anchors: Mapping[Pointer, Anchor]) -> Outline:
    """Return the locations and references in a schema, omitting parts that have a shared table."""
    return Outline(
        Place(""),
        schema.wire,
        next(dialect for dialect in dialects.DIALECTS if dialect.uri == schema.dialect),
        Folder("", {}),
        own=schema.own,
        apart=lambda pointer: pointer[:2] in anchors,
    )


class _Reader:
    def __init__(self, schema: ir.Schema, anchors: Mapping[Pointer, Anchor], start: Pointer) -> None:
        self._outline = make_outline(schema, anchors)
        self._outline.enter(start)
        self._anchors = anchors
        self._hides = self._outline.dialect.reference_hides_siblings
        self._references: dict[tuple[Pointer, str], Reference] = {
            (reference.pointer, reference.keyword): reference for reference in self._outline.references
        }
        self._start = start
        self._numbers: dict[Pointer, int] = {start: 0}

    def read_tables(self) -> Iterator[Table]:
        pointers = [self._start]
        for pointer in pointers:  # grows during the loop
            schema = get_at(self._outline.schema, pointer)
            root = self._make_row(pointer, schema, 0, "", is_key=False, required=False)
            rows = tuple(self._make_rows(pointer, schema, 0))
            yield Table(self._numbers[pointer], _name_table(pointer) if pointer else "", root, rows)
            pointers += [*self._numbers][len(pointers) :]

    def _make_row(self, pointer: Pointer, schema: Any, depth: int, name: str, *, is_key: bool, required: bool) -> Row:
        effective = self._get_effective(schema)
        title, description = effective.get("title"), effective.get("description")
        return Row(
            min(depth, DEEPEST),
            name,
            is_key,
            required,
            tuple(self._find_kinds(pointer, schema)),
            tuple(self._make_notes(pointer, effective)),
            (
                title
                if isinstance(title, str) and _normalize(title) != _normalize(name or self._get_name(pointer))
                else None
            ),
            description if isinstance(description, str) else self._find_target_description(pointer, effective),
        )

    def _get_name(self, pointer: Pointer) -> str:
        return self._anchors[pointer].name if pointer in self._anchors else str(pointer[-1]) if pointer else ""

    def _find_target_description(self, pointer: Pointer, schema: Mapping[str, Any]) -> str | None:
        for keyword in KEYWORDS:
            reference = self._references.get((pointer, keyword)) if keyword in schema else None
            if reference is not None and isinstance(reference.target, LocalTarget) and reference.target.pointer:
                target = get_at(self._outline.schema, reference.target.pointer)
                description = target.get("description") if isinstance(target, dict) else None
                return description if isinstance(description, str) else None
        return None

    def _get_effective(self, schema: Any) -> Mapping[str, Any]:
        """Return the keywords that apply: before 2019-09, a `$ref` disables its siblings."""
        if not isinstance(schema, dict):
            return {}
        if self._hides and "$ref" in schema:
            return {"$ref": schema["$ref"]}
        return schema

    # The type of a value

    def _find_kinds(self, pointer: Pointer, schema: Any) -> Iterator[Kind]:
        if schema is False:
            yield Kind("nothing")
            return
        effective = self._get_effective(schema)
        kinds = [*self._find_links(pointer, effective), *self._find_types(pointer, effective)]
        if not kinds:
            kinds = self._fold_alternatives(pointer, effective)
        if not kinds:
            kinds = [Kind(next((words for keyword, words in _OPTIONS.items() if keyword in effective), "any"))]
        yield from kinds

    def _find_links(self, pointer: Pointer, schema: Mapping[str, Any]) -> Iterator[Kind]:
        for keyword in KEYWORDS:
            reference = self._references.get((pointer, keyword)) if keyword in schema else None
            match reference.target if reference is not None else None:
                case LocalTarget(pointer=target) if target in self._anchors:
                    yield Kind(self._anchors[target].name, anchor=self._anchors[target])
                case LocalTarget(pointer=target):
                    yield Kind(_name_table(target), self._numbers.setdefault(target, len(self._numbers)))
                case Meta(uri=uri):
                    yield Kind(f"JSON Schema ({uri})")

    def _find_types(self, pointer: Pointer, schema: Mapping[str, Any]) -> Iterator[Kind]:
        types = schema.get("type")
        names = [types] if isinstance(types, str) else types if isinstance(types, list) else []
        if not names and ("enum" in schema or "const" in schema):
            values = schema["enum"] if isinstance(schema.get("enum"), list) else [schema.get("const")]
            names = [*dict.fromkeys(map(_name_type, values))]
        for name in names:
            if name == "array" and self._has_plain_items(schema):
                kinds = [*self._find_kinds((*pointer, "items"), schema["items"])]
                yield Kind("array of")
                yield from kinds
            else:
                yield Kind(str(name))

    def _fold_alternatives(self, pointer: Pointer, schema: Mapping[str, Any]) -> list[Kind]:
        """Merge the alternatives that specify only a type into one type."""
        for keyword in ("anyOf", "oneOf"):
            parts = schema.get(keyword)
            if isinstance(parts, list) and parts and all(map(_is_plain, parts)):
                return [
                    kind for at_, part in enumerate(parts) for kind in self._find_kinds((*pointer, keyword, at_), part)
                ]
        return []

    def _has_plain_items(self, schema: Mapping[str, Any]) -> bool:
        return "prefixItems" not in schema and isinstance(schema.get("items"), dict) and _is_plain(schema["items"])

    # The rules for a value

    def _make_notes(self, pointer: Pointer, schema: Mapping[str, Any]) -> Iterator[Note]:
        for keyword, value in schema.items():
            if keyword in _TEXTS or keyword in KEYWORDS or keyword in _REUSABLE:
                continue
            if keyword in BOUNDS and not isinstance(value, bool):
                yield Note(BOUNDS[keyword].format(_to_json(value), s="" if value == 1 else "s"))
            elif keyword == "enum" and isinstance(value, list):
                yield Note("one of", tuple(map(_to_json, value)))
            elif keyword == "const":
                yield Note("always", (_to_json(value),))
            elif keyword == "default":
                yield Note("default", (_to_json(value),))
            elif keyword == "examples" and isinstance(value, list):
                yield Note("such as", tuple(map(_to_json, value)))
            elif keyword == "pattern":
                yield Note("matches", (str(value),))
            elif keyword == "dependentRequired" and isinstance(value, dict):
                yield from (Note(f"with {key}, also", tuple(map(str, names))) for key, names in value.items())
            elif keyword in _OPTIONS and self._has_kind(pointer, schema):
                yield Note(f"and {_OPTIONS[keyword]}")
            elif keyword in _CLOSED and value is False:
                yield Note(_CLOSED[keyword])
            elif value is True and keyword not in self._outline.dialect.single:
                yield Note({"uniqueItems": "unique items", "readOnly": "read-only"}.get(keyword, keyword))
            elif keyword == "required":
                properties = schema.get("properties")
                if others := [
                    str(name) for name in value if not isinstance(properties, dict) or name not in properties
                ]:
                    yield Note("also required", tuple(others))
            elif keyword not in self._outline.dialect.holders and value is not False:
                yield Note(keyword, (value if isinstance(value, str) else _to_json(value),))

    # The parts of a value

    def _make_rows(self, pointer: Pointer, schema: Any, depth: int) -> Iterator[Row]:
        for below, child, name, is_key, required in self._find_children(pointer, self._get_effective(schema)):
            yield self._make_row(below, child, depth, name, is_key=is_key, required=required)
            yield from self._make_rows(below, child, depth + 1)

    def _find_children(
        self, pointer: Pointer, schema: Mapping[str, Any]
    ) -> Iterator[tuple[Pointer, Any, str, bool, bool]]:
        wanted = schema.get("required")
        names = wanted if isinstance(wanted, list) else []
        for keyword, value in schema.items():
            if keyword not in self._outline.dialect.holders or keyword in _REUSABLE:
                continue
            below = (*pointer, keyword)
            if keyword == "properties" and isinstance(value, dict):
                for name, child in value.items():
                    yield (*below, name), child, name, True, name in names
            elif keyword in _NAMED and isinstance(value, dict):
                for name, child in value.items():
                    if not isinstance(child, list):
                        yield (*below, name), child, _NAMED[keyword].format(name), False, False
            elif isinstance(value, list) and keyword in ("items", "prefixItems"):
                for index, child in enumerate(value):
                    yield (*below, index), child, f"item {index + 1}", False, False
            elif keyword == "allOf" and isinstance(value, list):
                for index, child in enumerate(value):
                    yield (*below, index), child, "also", False, False
            elif keyword in _OPTIONS and isinstance(value, list):
                if not self._fold_alternatives(pointer, schema) or self._has_kind(pointer, schema):
                    for index, child in enumerate(value):
                        yield (*below, index), child, f"option {index + 1}", False, False
            elif keyword == "items" and isinstance(value, dict):
                if schema.get("type") != "array" or not self._has_plain_items(schema):
                    yield (
                        below,
                        value,
                        ("each item" if "prefixItems" not in schema else "each later item"),
                        False,
                        False,
                    )
            elif keyword in _SINGLE and isinstance(value, dict) and value:
                yield below, value, _SINGLE[keyword], False, False

    def _has_kind(self, pointer: Pointer, schema: Mapping[str, Any]) -> bool:
        """Return whether the table shows the schema's own type instead of the types of its alternatives."""
        return bool([*self._find_links(pointer, schema), *self._find_types(pointer, schema)])


def _is_plain(schema: Any) -> bool:
    return (
        isinstance(schema, dict)
        and len(schema) == 1
        and isinstance(schema.get("type", schema.get("$ref")), str)
        and (schema.get("type") != "array")
    )


def _normalize(text: str) -> str:
    """Normalize a name, to detect titles that libraries derive from names (`Page Size` from `page_size`)."""
    return "".join(filter(str.isalnum, text.lower()))


def _name_table(pointer: Pointer) -> str:
    return str(pointer[-1]) if pointer else "the whole, again"


def _name_type(value: Any) -> str:
    names: Mapping[type, str] = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
    return "null" if value is None else names.get(type(value), "object")


def _to_json(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
