"""Downgrades tools and results to older revisions. Anything that a revision supports or ignores stays unchanged."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..schema.objects import as_objects, describes_objects

if TYPE_CHECKING:
    from collections.abc import Mapping

    from .revisions import Revision


def downgrade_tool(definition: dict[str, Any], revision: Revision) -> dict[str, Any]:
    """Downgrade a tool to a revision.

    Before 2026-07-28, an `outputSchema` requires `type: object`. The type is added if the schema implies it. Schemas
    that allow other values are omitted.
    """
    if revision.has("any_output") or "outputSchema" not in definition:
        return definition
    if describes_objects(definition["outputSchema"]):
        return {**definition, "outputSchema": as_objects(definition["outputSchema"])}
    return {key: value for key, value in definition.items() if key != "outputSchema"}


def downgrade_result(result: dict[str, Any], definition: Mapping[str, Any], revision: Revision) -> dict[str, Any]:
    """Downgrade a result to a revision.

    Before 2026-07-28, structured content is omitted if it is not an object or its `outputSchema` is omitted. Before
    2025-06-18, resource links become text. Before 2025-03-26, audio becomes embedded resources.
    """
    if revision.has("any_output"):
        return result
    schema = definition.get("outputSchema")
    is_object = isinstance(result.get("structuredContent"), dict) if schema is None else describes_objects(schema)
    if "structuredContent" in result and not is_object:
        result = {key: value for key, value in result.items() if key != "structuredContent"}
    if not revision.has("resource_links"):
        blocks = [downgrade_block(block, revision, number) for number, block in enumerate(result["content"], 1)]
        result = {**result, "content": blocks}
    return result


def downgrade_block(block: dict[str, Any], revision: Revision, number: int = 1) -> dict[str, Any]:
    """Downgrade a content block to a revision. `number` makes audio URIs unique within a result."""
    common = {key: value for key, value in block.items() if key in ("annotations", "_meta")}
    if block["type"] == "resource_link" and not revision.has("resource_links"):
        name = block.get("title") or block["name"]
        return {"type": "text", "text": f"{name}: {block['uri']}", **common}
    if block["type"] == "audio" and not revision.has("audio"):
        resource = {"uri": f"embedded://audio/{number}", "mimeType": block["mimeType"], "blob": block["data"]}
        return {"type": "resource", "resource": resource, **common}
    return block
