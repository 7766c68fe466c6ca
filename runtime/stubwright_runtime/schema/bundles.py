"""Restores the schemas of tools whose shared schemas are stored once in the package's `manifest.json`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def resolve_bundled(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """Return the tools that have bundled schemas, by name, with complete schemas.

    Tools can share the same objects, so do not modify them.
    """
    schemas: Mapping[str, Any] = manifest["bundled"]["schemas"]
    definitions: dict[tuple[str, ...], dict[str, Any]] = {}
    tools = {tool["name"]: tool for tool in manifest["tools"]}
    resolved: dict[str, dict[str, Any]] = {}
    for name, fields in manifest["bundled"]["tools"].items():
        whole = {**tools[name]}
        for field, uses in fields.items():
            key = tuple(uses)
            if key not in definitions:
                definitions[key] = {
                    schema_name: schemas[schema_name]["schema"] for schema_name in _follow_uses(schemas, key)
                }
            own = whole[field]
            whole[field] = {
                **own,
                "$defs": {**(own.get("$defs") or {}), **definitions[key]} if "$defs" in own else definitions[key],
            }
        resolved[name] = whole
    return resolved


def _follow_uses(schemas: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """Return the schemas in use, directly or indirectly, in breadth-first order."""
    reached = dict.fromkeys(names)
    waiting = [*reached]
    for name in waiting:  # grows during the loop
        for other in schemas[name]["uses"]:
            if other not in reached:
                reached[other] = None
                waiting.append(other)
    return waiting
