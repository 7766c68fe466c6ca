"""A client's tools in the form that the framework modules wrap."""

from __future__ import annotations

import base64
import json
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ...projection.codecs import ProjectionError
from ...values.terminal import replace_controls
from ...values.text import replace_surrogates
from ..core.arguments import to_json
from ..core.confirmation import is_dangerous
from ..core.connect_errors import ConnectError
from ..core.errors import CallRefused, ToolFailed
from ..core.responses import CallResponse, Responses
from ..features.functions import project_package, read_arguments
from ..rpc.mcp_error import MCPError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from mcp_types import ContentBlock

    from ...package import Tool
    from ...projection.forms import Form
    from ...projection.functions import ProjectedTool
    from ..core.binding import Binding


class CallFailedError(Exception):
    """A call failed, and the model can correct it or report it. The message is for the model."""


@dataclass(frozen=True, slots=True)
class Media:
    """An image, audio recording or file in a result.

    Attributes:
        data: The base64 data, as the server sent it.
        mime_type: The MIME type.
        name: The file name, if known.
    """

    data: str
    mime_type: str
    name: str | None = None

    @property
    def kind(self) -> str:
        """The first part of the MIME type, such as `image`."""
        return self.mime_type.partition("/")[0]

    @property
    def decoded(self) -> bytes:
        """The decoded data."""
        return base64.b64decode(self.data)

    @property
    def url(self) -> str:
        """The data and its MIME type as a `data:` URL."""
        return f"data:{self.mime_type};base64,{self.data}"


@dataclass(frozen=True, slots=True)
class AgentResult:
    """A call's result, converted for a model.

    Attributes:
        parts: Text and media; the first part is the JSON of `value` if the tool has an `outputSchema`.
        is_structured: Whether the tool has an `outputSchema`, and the server sent `structuredContent`.
        value: The `structuredContent`, or `None`.
    """

    parts: Sequence[str | Media]
    is_structured: bool
    value: Any

    @property
    def text(self) -> str | None:
        """The text if the result has no media, else `None`."""
        texts = [part for part in self.parts if isinstance(part, str)]
        return "\n".join(texts) if len(texts) == len(self.parts) else None


@dataclass(frozen=True, slots=True)
class AgentTool:
    """A client's tool that an agent framework can call.

    Attributes:
        client: The client that calls the tool.
        function: The tool's name, description and schema in a model API's format.
        needs_approval: Whether the framework must ask a person before each call.
    """

    client: Binding
    function: ProjectedTool
    needs_approval: bool

    @property
    def schema(self) -> dict[str, Any]:
        """The JSON Schema for the arguments."""
        return dict(self.function.parameters)

    async def call(self, arguments: Mapping[str, Any] | str) -> AgentResult:
        """Call the tool with the model's arguments, an object or the object's JSON.

        Raises:
            CallFailedError: The arguments cannot be parsed or sent, the tool returned `isError`, the server rejected
                the request or timed out, or the client's `confirm` declined the call.
            Exception: The result is invalid or too large, or the connection failed; see `Binding`.
        """
        tool = self.client._package.tools[self.function.tool]
        try:
            given = to_json(read_arguments(self.function, arguments))
        except (ProjectionError, TypeError, ValueError) as error:
            raise CallFailedError(str(error)) from error
        try:
            response = await Responses(self.client)._call_tool(tool, given)
        except ConnectError:
            raise
        except (CallRefused, MCPError) as error:
            raise CallFailedError(replace_controls(str(error))) from error
        if response.is_error:
            raise CallFailedError(str(ToolFailed(response.result)))
        return read_response(tool, response)


def list_agent_tools(client: Binding, form: Form) -> list[AgentTool]:
    """Return the client's tools, in the manifest's order.

    If the client has a `confirm` callback, the callback confirms every call, and the framework does not ask again.
    """
    package, has_confirm = client._package, client.__stubwright__[2].confirm is not None
    return [
        AgentTool(client, function, not has_confirm and is_dangerous(package.tools[function.tool]))
        for function in project_package(package, form, client._toolset).values()
    ]


def read_response(tool: Tool, response: CallResponse[Any]) -> AgentResult:
    """Convert a response for a model: to JSON if the tool has an `outputSchema`, otherwise to text and media."""
    value = response.structured
    parts = [_read_block(block) for block in response.content]
    is_structured = tool.output_name is not None and "structured_content" in response.result.model_fields_set
    if is_structured or (not parts and value is not None):
        text = replace_surrogates(json.dumps(value, ensure_ascii=False))
        parts = [text, *(part for part in parts if isinstance(part, Media))]
    return AgentResult(parts, is_structured, value)


def _read_block(block: ContentBlock) -> str | Media:
    match block.type:
        case "text":
            return block.text
        case "image" | "audio":
            return Media(block.data, block.mime_type)
        case "resource_link":
            about = f" ({block.description})" if block.description else ""
            return f"{block.title or block.name}: {block.uri}{about}"
        case "resource":
            resource = block.resource
            text = getattr(resource, "text", None)
            if isinstance(text, str):
                return text
            blob: str = getattr(resource, "blob", "")
            name = str(resource.uri).rpartition("/")[2]
            return Media(blob, resource.mime_type or "application/octet-stream", name or None)
