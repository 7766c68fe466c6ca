"""Generates any number of tools with the shapes of public servers."""

from __future__ import annotations

from typing import Any

_SORTS = ["created", "updated", "comments"]


def tools(count: int) -> list[dict[str, Any]]:
    """Return `count` tools with distinct names, one in three with an output schema, about 1.5 KB of JSON each."""
    return [_tool(number) for number in range(count)]


def _tool(number: int) -> dict[str, Any]:
    tool: dict[str, Any] = {
        "name": f"search_items_{number}",
        "title": f"Search items of kind {number}",
        "description": f"Search for items of kind {number} by text and by labels, newest first. Give at least a query.",
        "inputSchema": {
            "type": "object",
            "properties": {
                "query": {"type": "string", "minLength": 1, "description": "Words that must occur in the item"},
                "owner": {"type": "string", "description": "Login of the owner of the repository"},
                "labels": {"type": "array", "items": {"type": "string"}, "description": "Labels that the item has"},
                "state": {"type": "string", "enum": ["open", "closed", "all"], "default": "open"},
                "sort": {"type": "string", "enum": _SORTS, "description": "How to order what is found"},
                "since": {"type": "string", "format": "date-time", "description": "ISO 8601 time"},
                "page": {"type": "integer", "minimum": 1, "default": 1},
                "perPage": {"type": "integer", "minimum": 1, "maximum": 100, "default": 30},
                "range": {
                    "type": "object",
                    "properties": {"start": {"type": "integer"}, "end": {"type": "integer"}},
                    "required": ["start"],
                },
            },
            "required": ["query", "owner"],
            "additionalProperties": False,
        },
        "annotations": {"readOnlyHint": True, "openWorldHint": True},
    }
    if number % 3 == 0:
        tool["outputSchema"] = {
            "type": "object",
            "properties": {
                "items": {
                    "type": "array",
                    "items": {
                        "type": "object",
                        "properties": {
                            "id": {"type": "integer"},
                            "title": {"type": "string"},
                            "score": {"type": "number"},
                            "author": {
                                "type": "object",
                                "properties": {"login": {"type": "string"}, "url": {"type": "string"}},
                                "required": ["login"],
                            },
                            "closed": {"type": ["boolean", "null"]},
                        },
                        "required": ["id", "title"],
                    },
                },
                "total": {"type": "integer"},
            },
            "required": ["items", "total"],
        }
    return tool


def circle(schemas: int, count: int) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """Return shared schemas that all reference each other, and `count` tools that return them."""

    def leading(number: int) -> dict[str, Any]:
        return {"$ref": f"#/schemas/thing_{number % schemas:04}"}

    shared = {
        f"thing_{number:04}": {
            "type": "object",
            "properties": {
                "next": leading(number + 1),
                "parts": {"type": "array", "items": leading(7 * number + 3)},
            },
        }
        for number in range(schemas)
    }
    listed = [
        {
            "name": f"get_thing_{number:04}",
            "description": f"Get a thing of kind {number}.",
            "inputSchema": {"type": "object", "properties": {"id": {"type": "string"}}, "required": ["id"]},
            "outputSchema": {"type": "object", "properties": {"thing": leading(number * schemas // count)}},
        }
        for number in range(count)
    ]
    return shared, listed
