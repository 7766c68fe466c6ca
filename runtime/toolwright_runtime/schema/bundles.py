"""The schemas of tools whose shared schemas the package's `manifest.json` has once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any


def put_together(manifest: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The tools of a manifest whose schemas are not whole there, by name, with whole ones.

    Tools that refer to the same schemas get the same object, which is not to be changed.
    """
    schemas: Mapping[str, Any] = manifest["bundled"]["schemas"]
    found: dict[tuple[str, ...], dict[str, Any]] = {}
    tools = {tool["name"]: tool for tool in manifest["tools"]}
    made: dict[str, dict[str, Any]] = {}
    for name, fields in manifest["bundled"]["tools"].items():
        whole = {**tools[name]}
        for field, uses in fields.items():
            key = tuple(uses)
            if key not in found:
                found[key] = {one: schemas[one]["schema"] for one in _reached(schemas, key)}
            own = whole[field]
            whole[field] = {
                **own,
                "$defs": {**(own.get("$defs") or {}), **found[key]} if "$defs" in own else found[key],
            }
        made[name] = whole
    return made


def _reached(schemas: Mapping[str, Any], names: Sequence[str]) -> list[str]:
    """The schemas that these lead to, in the order in which they are first reached."""
    reached = dict.fromkeys(names)
    waiting = [*reached]
    for name in waiting:  # grows while it is read
        for other in schemas[name]["uses"]:
            if other not in reached:
                reached[other] = None
                waiting.append(other)
    return waiting
