"""Bound arguments: set by the server (for example from the caller's claims) and hidden from callers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stubwright.ir import Json


def select(auth: Mapping[str, Json], schema: Json) -> dict[str, Json]:
    """Return the bindings in `auth` for arguments in an `inputSchema`'s own `properties`."""
    bindings: Mapping[str, Json] = auth.get("bind") or {}
    known = get_properties(schema)
    return {name: binding for name, binding in bindings.items() if name in known}


def get_properties(schema: Json) -> Mapping[str, Json]:
    """Return the `properties` of an `inputSchema`, or an empty mapping."""
    known = schema.get("properties") if isinstance(schema, dict) else None
    return known if isinstance(known, dict) else {}


def hide(schema: Mapping[str, Json], bound: Mapping[str, Json]) -> dict[str, Json]:
    """Remove bound arguments from an `inputSchema`, as callers see it."""
    rest = {**schema, "properties": {name: each for name, each in schema["properties"].items() if name not in bound}}
    if required := [name for name in schema.get("required") or () if name not in bound]:
        rest["required"] = required
    else:
        rest.pop("required", None)
    return rest


def add_schemas(schema: Mapping[str, Json], bound: Mapping[str, Json]) -> dict[str, Json]:
    """Add the argument's schema to each binding."""
    return {name: {**binding, "schema": schema["properties"][name]} for name, binding in bound.items()}
