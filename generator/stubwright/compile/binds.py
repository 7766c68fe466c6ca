"""Arguments that the server sets from the caller's claims: what callers may send is the schema without them.

Takes an `inputSchema` and the names under `bind`; gives the schema that goes on the wire, and what the server needs to
put them in again. What `auth` binds in all tools becomes part of each tool here, so that nothing else has to know it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from stubwright.ir import Json


def of_all(auth: Mapping[str, Json], schema: Json) -> dict[str, Json]:
    """Return what `auth` binds of the arguments of a tool with this `inputSchema`, in its own `properties`."""
    bindings: Mapping[str, Json] = auth.get("bind") or {}
    known = properties(schema)
    return {name: binding for name, binding in bindings.items() if name in known}


def properties(schema: Json) -> Mapping[str, Json]:
    """Return the `properties` of an `inputSchema`; none if it has none."""
    known = schema.get("properties") if isinstance(schema, dict) else None
    return known if isinstance(known, dict) else {}


def without(schema: Mapping[str, Json], bound: Mapping[str, Json]) -> dict[str, Json]:
    """Return an `inputSchema` as callers see it."""
    rest = {**schema, "properties": {name: each for name, each in schema["properties"].items() if name not in bound}}
    if required := [name for name in schema.get("required") or () if name not in bound]:
        rest["required"] = required
    else:
        rest.pop("required", None)
    return rest


def completed(schema: Mapping[str, Json], bound: Mapping[str, Json]) -> dict[str, Json]:
    """Return what `bind` says, each with the schema of its argument, so that the server need not look elsewhere."""
    return {name: {**binding, "schema": schema["properties"][name]} for name, binding in bound.items()}
