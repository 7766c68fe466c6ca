"""Derives a tool's wire schemas from its `http` or `paginate`.

`select`, `responseHeaders` and `page` change the `outputSchema` of HTTP calls, and `cursor` replaces the API's own
position argument. `paginate` adds `cursor` and `nextCursor` to a handler's schemas.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

from stubwright.jsonschema.selection import SchemaSelector
from stubwright_runtime.http.selections import WHOLE, make_tree, parse_steps, select_below
from stubwright_runtime.mcp.vocabulary import CURSOR, NEXT_CURSOR

if TYPE_CHECKING:
    from stubwright.ir import Json
    from stubwright_runtime.http.selections import Tree

SHAPING: Final = frozenset({"page", "responseHeaders", "select"})
"""Keys of `http` that make the result differ from the response body."""

_LONGEST: Final = 4096
_CURSOR: Final[Mapping[str, Json]] = {
    "type": "string",
    "minLength": 1,
    "maxLength": _LONGEST,
    "description": "The previous page's `next`. Keep the other arguments the same. Omit it for the first page.",
}
_NEXT: Final[Mapping[str, Json]] = {
    "type": "string",
    "description": "The `cursor` for the next page. Absent on the last page.",
}

_POSITION: Final[Mapping[str, Json]] = {
    "type": "string",
    "minLength": 1,
    "maxLength": _LONGEST,
    "description": "The previous page's `nextCursor`. Keep the other arguments the same. Omit it for the first page.",
}
_NEXT_POSITION: Final[Mapping[str, Json]] = {
    "type": "string",
    "description": "Pass it as `cursor` to get the next page. Absent on the last page.",
}


def paginate(field: str, schema: Mapping[str, Json]) -> dict[str, Json]:
    """Return the wire schema for a paginated tool with a handler.

    Args:
        field: `inputSchema` or `outputSchema`.
        schema: The schema in the manifest.
    """
    name, own = (CURSOR, _POSITION) if field == "inputSchema" else (NEXT_CURSOR, _NEXT_POSITION)
    return {**schema, "properties": {**(schema.get("properties") or {}), name: dict(own)}}


def shape(field: str, schema: Json, http: Mapping[str, Json]) -> Json:
    """Return the wire schema of a tool.

    Args:
        field: `inputSchema` or `outputSchema`.
        schema: The self-contained schema from the manifest, or None if there is none.
        http: The tool's `http`, possibly empty.
    """
    if SHAPING.isdisjoint(http):
        return schema
    return _shape_input(schema, http) if field == "inputSchema" else _shape_output(schema, http)


def _shape_input(schema: Mapping[str, Json], http: Mapping[str, Json]) -> Json:
    if "page" not in http:
        return schema
    own = http["page"].get("argument")
    properties = {name: each for name, each in (schema.get("properties") or {}).items() if name != own}
    shaped = {**schema, "properties": {**properties, CURSOR: dict(_CURSOR)}}
    if "required" in shaped:
        shaped["required"] = [name for name in shaped["required"] if name not in (own, CURSOR)]
        if not shaped["required"]:
            del shaped["required"]
    return shaped


def _shape_output(schema: Json, http: Mapping[str, Json]) -> Json:
    root = True if schema is None else schema
    selector = SchemaSelector(root)
    tree = make_tree(http.get("select") or ())
    headers = _describe_headers(http.get("responseHeaders") or {})
    if "page" in http:
        parts: dict[str, Json] = {"items": {"type": "array", "items": _select_items(selector, http["page"], tree)}}
        parts["next"] = dict(_NEXT)
    elif headers:
        parts = {"body": selector.keep(root, tree)}
    else:
        return None if schema is None else selector.finish(selector.keep(root, tree))
    parts |= headers
    required = [name for name in parts if name != "next"]
    return selector.finish({"type": "object", "properties": parts, "required": required, "additionalProperties": False})


def _describe_headers(headers: Mapping[str, Json]) -> dict[str, Json]:
    if not headers:
        return {}
    kinds = {
        name: "string" if isinstance(header, str) else header.get("type", "string") for name, header in headers.items()
    }
    texts: Json = {"type": "array", "items": {"type": "string"}}
    properties = {name: texts if kind == "array" else {"type": kind} for name, kind in kinds.items()}
    return {"headers": {"type": "object", "properties": properties, "additionalProperties": False}}


def _select_items(selector: SchemaSelector, page: Mapping[str, Json], tree: Tree) -> Json:
    schemas: list[Json] | None = [selector.root]
    here: Tree | None = tree
    for step in parse_steps(page.get("items", "")):
        schemas = None if schemas is None else selector.follow(schemas, step)
        here = None if here is None or step is None else select_below(here, step)
    selection = WHOLE if not here else here.get(None, WHOLE)
    items_schemas: list[Json] = []
    for schema in schemas or ():
        items = selector.list_items(schema)
        if items is None:
            return {}
        items_schemas += items
    selected = [selector.keep(each, selection) for each in items_schemas]
    different = [each for number, each in enumerate(selected) if each not in selected[:number]]
    return {"anyOf": different} if len(different) > 1 else different[0] if different else {}
