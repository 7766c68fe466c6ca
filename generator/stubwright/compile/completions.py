"""Argument completions from the `enum` of a shared schema."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stubwright.jsonschema.references import LocalTarget, SharedSchema, get_at

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stubwright.compile.resolve import Declaration, ResolvedBundle
    from stubwright.diagnostics import Place, Pointer
    from stubwright.ir import Json
    from stubwright.jsonschema.references import Outline


def find_references(declared: Declaration) -> Iterator[tuple[str, Place, Json]]:
    """Yield the location and reference of each argument with completions from a schema."""
    for place, layer in declared.layers:
        for name, offer in (layer.get("complete") or {}).items():
            if isinstance(offer, dict):
                yield name, place / "complete" / name, offer


def is_completion(place: Place) -> bool:
    """Return whether `place` is an entry of `complete`."""
    return place.pointer[-2:-1] == ("complete",)


def resolves(resolved: ResolvedBundle, place: Place) -> bool:
    """Return whether the reference at `place` refers to a shared schema."""
    return any(isinstance(each.target, SharedSchema) for each in resolved.extension_schemas[place].references)


def find_values(resolved: ResolvedBundle, place: Place) -> list[str]:
    """Return the strings in the `enum` that the reference at `place` resolves to, empty if there is no `enum`."""
    outline: Outline = resolved.extension_schemas[place]
    pointer: Pointer = ()
    seen: set[tuple[Place, Pointer]] = set()
    while (outline.place, pointer) not in seen:
        seen.add((outline.place, pointer))
        schema = get_at(outline.schema, pointer)
        if isinstance(schema, dict) and "enum" in schema:
            return [value for value in schema["enum"] if isinstance(value, str)]
        for reference in outline.references:
            if reference.pointer != pointer or reference.keyword != "$ref":
                continue
            match reference.target:
                case SharedSchema(key):
                    outline, pointer = resolved.shared[key], ()
                case LocalTarget(inner):
                    pointer = inner
            break
    return []
