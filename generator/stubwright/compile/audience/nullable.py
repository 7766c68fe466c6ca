"""Rewrites type lists as `anyOf`, for clients that only support a single `type` (`wire: {nullable: anyOf}`)."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from stubwright.jsonschema import dialects
from stubwright.jsonschema.bundling import edit
from stubwright.jsonschema.references import Folder, LocalTarget, Outline

if TYPE_CHECKING:
    from collections.abc import Container, Iterable, Mapping

    from stubwright.diagnostics import Place, Pointer
    from stubwright.ir import Json
    from stubwright.jsonschema.dialects import Dialect

_TYPE_SPECIFIC: Final = frozenset(
    {"minLength", "maxLength", "pattern", "format", "contentEncoding", "contentMediaType", "contentSchema"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"}
    | {"items", "prefixItems", "additionalItems", "minItems", "maxItems", "uniqueItems"}
    | {"contains", "minContains", "maxContains"}
    | {"properties", "patternProperties", "additionalProperties", "required", "propertyNames"}
    | {"minProperties", "maxProperties"}
)
"""Keywords that never reject null, so they can move to the non-null alternative."""


def split_types(wire: Json, dialect: Dialect, place: Place, kept: Iterable[Pointer] = ()) -> Json:
    """Return an equivalent schema without type lists.

    Args:
        wire: The schema to rewrite.
        dialect: The schema's dialect.
        place: The schema's location in the source.
        kept: Pointers into the schema that must stay valid.
    """
    targets = (
        reference.target.pointer
        for reference in Outline(place, wire, dialect, Folder("", {})).references
        if isinstance(reference.target, LocalTarget)
    )
    fixed = {pointer[:end] for pointer in (*targets, *kept) for end in range(len(pointer))}
    return _split_nested(wire, dialect, fixed, ())


def _split_nested(schema: Json, dialect: Dialect, fixed: Container[Pointer], pointer: Pointer) -> Json:
    if not isinstance(schema, dict):
        return schema
    edits: dict[Pointer, Any] = {}
    for steps, child in dialects.iterate_children(schema, dialect):
        new = _split_nested(child, dialect, fixed, (*pointer, *steps))
        if new is not child:
            edits[steps] = new
    edited: dict[str, Json] = edit(schema, edits)
    types = edited.get("type")
    if not isinstance(types, list) or (dialect.reference_hides_siblings and "$ref" in edited):
        return edited
    return _split(edited, types, can_move=pointer not in fixed)


def _split(schema: Mapping[str, Json], types: list[Json], *, can_move: bool) -> dict[str, Json]:
    if len(types) == 1:
        return {**schema, "type": types[0]}
    branches: list[dict[str, Json]] = [{"type": kind} for kind in types]
    if "anyOf" in schema:
        rest = {key: value for key, value in schema.items() if key != "type"}
        return {**rest, "allOf": [*schema.get("allOf", ()), {"anyOf": branches}]}
    moved: dict[str, Json] = {}
    others = [branch for branch in branches if branch["type"] != "null"]
    if can_move and len(others) == 1 and len(branches) > 1:
        moved = {key: value for key, value in schema.items() if key in _TYPE_SPECIFIC}
        values = schema.get("enum")
        if isinstance(values, list) and None in values and len(values) > 1:
            moved["enum"] = [value for value in values if value is not None]
        others[0].update(moved)
    written = {"anyOf" if key == "type" else key: value for key, value in schema.items() if key not in moved}
    return {**written, "anyOf": branches}
