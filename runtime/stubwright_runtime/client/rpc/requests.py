"""The request methods of an untyped client, which all use `send_request`."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types as types
from pydantic import BaseModel

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.options import ProgressCallback

_Result = TypeVar("_Result", bound="BaseModel")


class ToolCall:
    """A `tools/call` request without the validation of parameters that a pydantic model would do for each call."""

    name_param = "name"

    def __init__(self, params: dict[str, Any]) -> None:
        """Create a request; the arguments in `params` are JSON values."""
        self.params = params

    def model_dump(self, **options: Any) -> dict[str, Any]:
        """Return the request as JSON, like a pydantic model."""
        params = {**self.params}
        if responses := params.get("inputResponses"):
            params["inputResponses"] = {
                key: response.model_dump(**options) if isinstance(response, BaseModel) else response
                for key, response in responses.items()
            }
        return {"method": "tools/call", "params": params}


class Requests(ABC):
    """The request methods of an untyped client."""

    @abstractmethod
    async def send_request(
        self,
        request: types.Request[Any, Any],
        result_type: type[_Result],
        request_read_timeout_seconds: float | None = None,
        *,
        progress_callback: ProgressCallback | None = None,
    ) -> _Result:
        """Send a request and return its result."""

    async def list_tools(self, *, cursor: str | None = None) -> types.ListToolsResult:
        """Fetch a page of the tool list."""
        return await self._fetch(types.ListToolsRequest, types.ListToolsResult, cursor)

    async def list_prompts(self, *, cursor: str | None = None) -> types.ListPromptsResult:
        """Fetch a page of the prompt list."""
        return await self._fetch(types.ListPromptsRequest, types.ListPromptsResult, cursor)

    async def list_resources(self, *, cursor: str | None = None) -> types.ListResourcesResult:
        """Fetch a page of the resource list."""
        return await self._fetch(types.ListResourcesRequest, types.ListResourcesResult, cursor)

    async def list_resource_templates(self, *, cursor: str | None = None) -> types.ListResourceTemplatesResult:
        """Fetch a page of the resource template list."""
        return await self._fetch(types.ListResourceTemplatesRequest, types.ListResourceTemplatesResult, cursor)

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> types.CallToolResult:
        """Call a tool. The callbacks answer input requests."""
        params = {"name": name, "arguments": arguments}
        return await self._send_rounds(types.CallToolRequest, params, types.CallToolResult)

    async def read_resource(self, uri: str) -> types.ReadResourceResult:
        """Read a resource. The callbacks answer input requests."""
        return await self._send_rounds(types.ReadResourceRequest, {"uri": uri}, types.ReadResourceResult)

    async def get_prompt(self, name: str, arguments: dict[str, str] | None = None) -> types.GetPromptResult:
        """Get a prompt. The callbacks answer input requests."""
        params = {"name": name, "arguments": arguments}
        return await self._send_rounds(types.GetPromptRequest, params, types.GetPromptResult)

    async def _fetch(
        self, request: Callable[..., types.Request[Any, Any]], result: type[_Result], cursor: str | None
    ) -> _Result:
        return await self.send_request(request(params=types.PaginatedRequestParams(cursor=cursor)), result)

    async def _send_rounds(
        self, request: Callable[..., types.Request[Any, Any]], params: dict[str, Any], result: type[_Result]
    ) -> _Result:
        from ..core.input_required import send_until_result
        from ..core.session import allow_question

        client: Any = self
        return await send_until_result(
            client, params, lambda params: self.send_request(request(params=params), allow_question(result))
        )
