"""Tools for the OpenAI Agents SDK. A dangerous tool sets `needs_approval`, and an error becomes the output text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...projection.forms import FORMS
from .calls import AgentTool, CallFailedError, Media, list_agent_tools

if TYPE_CHECKING:
    from agents import FunctionTool
    from agents.tool_context import ToolContext

    from ..core.binding import Binding


def make_tools(client: Binding) -> list[FunctionTool]:
    """Convert a client's tools to function tools."""
    return [_make_tool(tool) for tool in list_agent_tools(client, FORMS["openai"])]


def _make_tool(tool: AgentTool) -> FunctionTool:
    from agents import FunctionTool

    async def call(_context: ToolContext[Any], arguments: str) -> Any:
        try:
            result = await tool.call(arguments)
        except CallFailedError as failed:
            return f"Error: {failed}"
        text = result.text
        return [_write(part) for part in result.parts] if text is None else text

    return FunctionTool(
        name=tool.function.name,
        description=tool.function.description,
        params_json_schema=tool.schema,
        on_invoke_tool=call,
        strict_json_schema=False,  # a strict schema would change the arguments
        needs_approval=tool.needs_approval,
    )


def _write(part: str | Media) -> Any:
    from agents import ToolOutputFileContent, ToolOutputImage, ToolOutputText

    if isinstance(part, str):
        return ToolOutputText(text=part)
    if part.kind == "image":
        return ToolOutputImage(image_url=part.url)
    if part.kind == "audio":
        return ToolOutputText(text=f"An audio recording ({part.mime_type}), which this framework does not support.")
    return ToolOutputFileContent(file_data=part.url, filename=part.name or "file")
