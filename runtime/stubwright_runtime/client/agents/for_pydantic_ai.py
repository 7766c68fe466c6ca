"""Tools for Pydantic AI. A dangerous tool sets `requires_approval`, and an error becomes Pydantic AI's `ToolFailed`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...projection.forms import FORMS
from .calls import AgentTool, CallFailedError, Media, list_agent_tools

if TYPE_CHECKING:
    from pydantic_ai import Tool

    from ..core.binding import Binding


def make_tools(client: Binding) -> list[Tool[Any]]:
    """Convert a client's tools to Pydantic AI tools."""
    return [_make_tool(tool) for tool in list_agent_tools(client, FORMS["openai"])]


def _make_tool(tool: AgentTool) -> Tool[Any]:
    from pydantic_ai import BinaryContent, Tool, ToolFailed

    async def call(**arguments: Any) -> Any:
        try:
            result = await tool.call(arguments)
        except CallFailedError as failed:
            raise ToolFailed(str(failed)) from failed
        parts: list[Any] = [
            BinaryContent(part.decoded, media_type=part.mime_type) if isinstance(part, Media) else part
            for part in result.parts
        ]
        if result.is_structured:
            parts[0] = result.value  # the framework serializes the JSON
        return parts[0] if len(parts) == 1 else parts

    made: Tool[Any] = Tool.from_schema(call, tool.function.name, tool.function.description, tool.schema)
    made.requires_approval = tool.needs_approval
    return made
