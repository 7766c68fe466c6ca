"""Defaults for fields that servers often omit from results."""

from __future__ import annotations

from typing import Any

from ...values.json import Json, is_mapping


def complete_result(result: dict[str, Any]) -> None:
    """Add the defaults to a result in place.

    - `resultType` is "complete" (MCP 2026-07-28, schema, `Result`). Older revisions ignore it.
    - `content` is empty if there is `structuredContent` (`CallToolResult`).
    - An `isError` of null is removed (`CallToolResult`).
    - The `type` of an `inputSchema` is "object" (`Tool`).
    """
    result.setdefault("resultType", "complete")
    if "structuredContent" in result:
        result.setdefault("content", [])
    if result.get("isError", False) is None:
        del result["isError"]
    tools: Json = result.get("tools")
    for tool in tools if isinstance(tools, list) else ():
        schema: Json = tool.get("inputSchema") if is_mapping(tool) else None
        if isinstance(schema, dict):
            schema.setdefault("type", "object")
