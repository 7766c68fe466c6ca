"""Schemas for trees with three kinds of nodes, and trees of any depth, for tests of growth with depth."""

from __future__ import annotations

from typing import Any

KINDS = ("a", "b", "c")


def schema(keyword: str = "oneOf", *, tagged: bool = True, **more: Any) -> dict[str, Any]:
    """Return an object schema with a node; a constant key distinguishes the kinds of nodes, or no key does."""
    return {
        "type": "object",
        "properties": {"node": {"$ref": "#/$defs/Node"}},
        "required": ["node"],
        "$defs": {"Node": {keyword: [_tagged(kind) if tagged else _loose(kind) for kind in KINDS]}},
        **more,
    }


def _tagged(kind: str) -> dict[str, Any]:
    children = {"type": "array", "items": {"$ref": "#/$defs/Node"}}
    return {"type": "object", "properties": {"children": children, "kind": {"const": kind}}, "required": ["kind"]}


def _loose(kind: str) -> dict[str, Any]:
    children = {"type": "array", "items": {"$ref": "#/$defs/Node"}}
    return {"type": "object", "properties": {"children": children, f"of_{kind}": {"type": "string"}}}


def tree(depth: int, leaf: dict[str, Any], **node: Any) -> dict[str, Any]:
    """Return `depth` nested nodes. The last is `leaf`."""
    made = leaf
    for _ in range(depth - 1):
        made = {**node, "children": [made]}
    return {"node": made}


def chain(length: int) -> dict[str, Any]:
    """Return a schema without recursion, with three branches at each of this many levels."""
    definitions: dict[str, Any] = {f"D{length}": {"type": "string"}}
    for level in range(length):
        below = {"$ref": f"#/$defs/D{level + 1}"}
        definitions[f"D{level}"] = {
            "anyOf": [{"type": "object", "properties": {"node": below, f"of_{kind}": {}}} for kind in KINDS]
        }
    return {"type": "object", "properties": {"node": {"$ref": "#/$defs/D0"}}, "$defs": definitions}


def path(depth: int) -> dict[str, Any]:
    """Return a value for such a schema that no branch accepts."""
    made: Any = 1
    for _ in range(depth + 1):
        made = {"node": made}
    return dict(made)
