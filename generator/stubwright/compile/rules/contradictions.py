"""Rules about contradictory schemas: valid schemas that accept no value."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from stubwright.diagnostics import Diagnostic, Pointer
from stubwright.diagnostics.suggestions import find_misspelt, format_scalar, suggest

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stubwright.compile.resolve import ResolvedBundle
    from stubwright.ir import Json
    from stubwright.jsonschema.references import Outline

_NEGATING = frozenset({"not", "if"})
_CHOOSING = frozenset({"anyOf", "oneOf", "if", "then", "else", "dependentSchemas", "dependencies"})
_ADDING = frozenset({"$ref", "$dynamicRef", "$recursiveRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas"})
_BOUNDS = (
    ("minimum", "maximum"),
    ("minLength", "maxLength"),
    ("minItems", "maxItems"),
    ("minProperties", "maxProperties"),
    ("minContains", "maxContains"),
    ("minimum", "exclusiveMaximum"),
    ("exclusiveMinimum", "maximum"),
    ("exclusiveMinimum", "exclusiveMaximum"),
)
_LOWER = frozenset(lower for lower, _ in _BOUNDS)


def check_required(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that required properties are allowed and are not misspelled (2020-12 Validation, 6.5.3)."""
    for outline in resolved.list_outlines():
        for pointer, schema in outline.find_having("required"):
            if isinstance(schema["required"], list):
                properties = schema.get("properties") or {}
                for index, name in enumerate(schema["required"]):
                    if name not in properties:
                        yield from _check_required_name(outline, pointer, schema, index, serves=resolved.serves)


def check_bounds(resolved: ResolvedBundle) -> Iterator[Diagnostic]:
    """Check that no lower bound exceeds its upper bound."""
    for outline in resolved.list_outlines():
        for pointer, schema in outline.schemas.items():
            if isinstance(schema, dict) and not _LOWER.isdisjoint(schema) and not _is_hidden(outline, schema):
                for lower, upper in _BOUNDS:
                    if lower in schema and upper in schema and _contradict(lower, upper, schema):
                        yield Diagnostic(
                            "SW323",
                            f"`{lower}: {format_scalar(schema[lower])}` and `{upper}: {format_scalar(schema[upper])}` "
                            "contradict each other: no value is valid",
                            outline.locate(pointer) / lower,
                            "change one",
                        )


def _check_required_name(
    outline: Outline, pointer: Pointer, schema: dict[str, Json], index: int, *, serves: bool
) -> Iterator[Diagnostic]:
    name = schema["required"][index]
    properties = schema.get("properties") or {}
    if _is_hidden(outline, schema) or not _NEGATING.isdisjoint(pointer) or _matches_pattern(name, schema):
        return
    free = [key for key in properties if key not in schema["required"]]
    near = find_misspelt(name, free)
    code = "SW322"
    if schema.get("additionalProperties") is False:
        # an unsatisfiable alternative is harmless, and users cannot change an imported server's schemas
        code = "SW229" if serves and _CHOOSING.isdisjoint(pointer) else code
        message = f"`{name}` is required, but `additionalProperties: false` forbids it: no value is valid"
        fix = suggest(name, near) if near else "add it to `properties`, or remove it from `required`"
    elif near and _ADDING.isdisjoint(schema) and not _is_declared_above(outline, pointer, name):
        message, fix = f"`{name}` is required, but not declared in `properties`", suggest(name, near)
    else:
        return
    yield Diagnostic(code, message, outline.locate(pointer) / "required" / index, fix)


def _matches_pattern(name: str, schema: dict[str, Json]) -> bool:
    try:
        return any(re.search(text, name) for text in schema.get("patternProperties") or ())
    except re.error:
        return True


def _is_declared_above(outline: Outline, pointer: Pointer, name: str) -> bool:
    return any(name in (outline.schemas[above].get("properties") or ()) for above in outline.find_folded(pointer))


def _contradict(lower: str, upper: str, schema: dict[str, Json]) -> bool:
    least, most = schema[lower], schema[upper]
    if isinstance(least, bool) or isinstance(most, bool):  # an exclusive bound of draft-04
        return False
    is_open = lower.startswith("exclusive") or upper.startswith("exclusive")
    return bool(least >= most if is_open else least > most)


def _is_hidden(outline: Outline, schema: dict[str, Json]) -> bool:
    return "$ref" in schema and outline.dialect.reference_hides_siblings
