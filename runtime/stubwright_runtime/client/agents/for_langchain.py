"""Tools for LangChain. An error is a `ToolMessage` with `status="error"`.

LangChain itself does not ask for approval. `metadata["requires_approval"]` marks tools for its
`HumanInTheLoopMiddleware`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Final

from ...projection.forms import FORMS, Form
from .calls import AgentTool, CallFailedError, Media, list_agent_tools

if TYPE_CHECKING:
    from langchain_core.tools import StructuredTool

    from ..core.binding import Binding

_FORM: Final[Form] = replace(
    FORMS["openai"], property_name=r"^(?!(?:self|config|run_manager|callbacks)$)[a-zA-Z0-9_.-]{1,64}$"
)
"""Renames arguments whose names LangChain reserves."""

_KINDS: Final = frozenset({"image", "audio", "video"})


def make_tools(client: Binding) -> list[StructuredTool]:
    """Convert a client's tools to LangChain tools."""
    return [_make_tool(tool) for tool in list_agent_tools(client, _FORM)]


def _make_tool(tool: AgentTool) -> StructuredTool:
    from langchain_core.tools import StructuredTool, ToolException

    async def call(**arguments: Any) -> tuple[str | list[dict[str, Any]], Any]:
        try:
            result = await tool.call(arguments)
        except CallFailedError as failed:
            raise ToolException(str(failed)) from failed
        text = result.text
        return [_write(part) for part in result.parts] if text is None else text, result.value

    return StructuredTool(
        name=tool.function.name,
        description=tool.function.description,
        args_schema=tool.schema,
        coroutine=call,
        response_format="content_and_artifact",
        handle_tool_error=True,
        metadata={"requires_approval": tool.needs_approval},
    )


def _write(part: str | Media) -> dict[str, Any]:
    if isinstance(part, str):
        return {"type": "text", "text": part}
    kind = part.kind if part.kind in _KINDS else "file"
    return {"type": kind, "base64": part.data, "mime_type": part.mime_type}
