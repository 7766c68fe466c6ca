"""What an older revision of the protocol cannot carry, as the nearest that it can.

Takes tools and results of the newest revision as they go on the wire; gives them for one revision. Whatever that
revision knows, or merely ignores, stays as it is.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..schema.objects import as_objects, describes_objects

if TYPE_CHECKING:
    from collections.abc import Mapping

FIRST_AUDIO: Final = "2025-03-26"
FIRST_LINKS: Final = "2025-06-18"
FIRST_STATELESS: Final = "2026-07-28"
"""The first revision without a handshake; also the first in which structured content need not be an object."""


def tool_for(definition: dict[str, Any], revision: str) -> dict[str, Any]:
    """A tool for this revision.

    Before 2026-07-28, an `outputSchema` says `type: object` at its root: one whose instances are all objects gets it
    where it only follows from its references or alternatives, and one that allows other values is left out.
    """
    if revision >= FIRST_STATELESS or "outputSchema" not in definition:
        return definition
    if describes_objects(definition["outputSchema"]):
        return {**definition, "outputSchema": as_objects(definition["outputSchema"])}
    return {key: value for key, value in definition.items() if key != "outputSchema"}


def block_for(block: dict[str, Any], revision: str, number: int = 1) -> dict[str, Any]:
    """A block of content for this revision; `number` tells sounds of one result apart."""
    return block if revision >= FIRST_LINKS else _block_for(block, number, revision)


def result_for(result: dict[str, Any], definition: Mapping[str, Any], revision: str) -> dict[str, Any]:
    """A result for this revision.

    Before 2026-07-28, structured content goes with its `outputSchema`, and without one where it is no object; before
    2025-06-18, resource links become text; before 2025-03-26, sounds become embedded resources.
    """
    if revision >= FIRST_STATELESS:
        return result
    schema = definition.get("outputSchema")
    is_kept = isinstance(result.get("structuredContent"), dict) if schema is None else describes_objects(schema)
    if "structuredContent" in result and not is_kept:
        result = {key: value for key, value in result.items() if key != "structuredContent"}
    if revision < FIRST_LINKS:
        blocks = [_block_for(block, number, revision) for number, block in enumerate(result["content"], 1)]
        result = {**result, "content": blocks}
    return result


def _block_for(block: dict[str, Any], number: int, revision: str) -> dict[str, Any]:
    common = {key: value for key, value in block.items() if key in ("annotations", "_meta")}
    if block["type"] == "resource_link":
        name = block.get("title") or block["name"]
        return {"type": "text", "text": f"{name}: {block['uri']}", **common}
    if block["type"] == "audio" and revision < FIRST_AUDIO:
        resource = {"uri": f"embedded://audio/{number}", "mimeType": block["mimeType"], "blob": block["data"]}
        return {"type": "resource", "resource": resource, **common}
    return block
