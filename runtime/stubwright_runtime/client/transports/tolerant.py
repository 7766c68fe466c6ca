"""A transport of the SDK that is content with less than the SDK is.

Takes a transport; gives the same, but that a result without `resultType` is a complete one (MCP 2026-07-28, schema,
`Result`), that one with `structuredContent` alone has no `content` beside it, that an `isError` of null is left out
(`CallToolResult`), and that an `inputSchema` without a `type` is one of objects, as all are (`Tool`). Servers that
forget these are common; the SDK refuses their results, and for one tool the list of all. It changes nothing else.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...values.json import Json, is_mapping
from .guarded import SafeTransport

if TYPE_CHECKING:
    from mcp.shared.message import SessionMessage


class TolerantTransport(SafeTransport):
    """The transport."""

    def receive_item(self, item: SessionMessage | Exception) -> SessionMessage | Exception | None:
        """Return the item, if any, with `resultType` where it is a result. Revisions that do not know it ignore it."""
        from mcp_types import JSONRPCResponse

        if not isinstance(item, Exception) and isinstance(item.message, JSONRPCResponse):
            result = item.message.result
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
        return super().receive_item(item)
