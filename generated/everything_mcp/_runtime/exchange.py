# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""One tool call over an open connection: the requests that it takes, and the result that ends it.

Takes JSON arguments, gives the server's result as it came. It drives the rounds of `input_required` and the headers
that mirror arguments, and validates nothing: `mcp.Client.call_tool` would check each result a second time, against a
`tools/list` that it first asks for, and fails there where one schema of the whole list is odd.
"""

from __future__ import annotations

import inspect
import logging
import math
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from mcp import Client
    from mcp.shared.dispatcher import ProgressFnT
    from mcp_types import CallToolRequestParams, CallToolResult, InputRequiredResult, InputResponses
    from pydantic import TypeAdapter

    from .options import OnProgress, Options
    from .tools import Tool

_LOG: Final = logging.getLogger(__name__)

_PAGES: Final = 100
"""Pages of `tools/list` that are read to find one tool, so that a list without an end cannot hold up a call."""

_PAUSES: Final = (0.05, 0.1, 0.2, 0.25)
"""Seconds before the next round where the server asked nothing and only wants to be called again."""


class Exchange:
    """The calls over one connection."""

    def __init__(self, client: Client) -> None:
        """Take a client; it is used when it is open."""
        self.client = client
        self._listed: set[str] = set()

    @property
    def modern(self) -> bool:
        """Whether the connection speaks 2026-07-28 or later, where there is no handshake."""
        from mcp_types.version import MODERN_PROTOCOL_VERSIONS

        return self.client.protocol_version in MODERN_PROTOCOL_VERSIONS

    async def call(self, tool: Tool, arguments: dict[str, Any], options: Options) -> CallToolResult:
        """Call a tool until it has a result (MCP 2026-07-28, "Multi Round-Trip Requests").

        What the server asks for is answered by the callbacks of the `mcp.Client`, one question after the other.

        Args:
            tool: The tool.
            arguments: Its arguments, as JSON.
            options: Of these, `timeout` holds for each answer of the server, and `on_progress` is told.

        Raises:
            mcp.MCPError: The server answered with a protocol error, did not answer in time (`REQUEST_TIMEOUT`), or is
                gone; or there is no callback for what it asks.
            mcp.InputRequiredRoundsExceededError: It kept asking.
            pydantic.ValidationError: It sent what is no result of a tool.
        """
        import anyio
        from mcp import InputRequiredRoundsExceededError
        from mcp_types import CallToolRequestParams, CallToolResult

        params = CallToolRequestParams(name=tool.name, arguments=arguments)
        rounds = self.client.input_required_max_rounds
        for number in range(rounds + 1):
            answer = await self._mirrored(tool, params, options)
            if isinstance(answer, CallToolResult):
                return answer
            if number < rounds:
                responses = await self._answers(answer)
                if responses is None:
                    await anyio.sleep(_PAUSES[min(number, len(_PAUSES) - 1)])
                params = params.model_copy(update={"input_responses": responses, "request_state": answer.request_state})
        raise InputRequiredRoundsExceededError(rounds)

    async def _answers(self, asked: InputRequiredResult) -> InputResponses | None:
        """What the client's callbacks answer; `None` where nothing was asked."""
        from mcp import MCPError
        from mcp.client import ClientRequestContext
        from mcp_types import ErrorData

        answers: InputResponses = {}
        session = self.client.session
        for key, request in (asked.input_requests or {}).items():
            meta = request.params.meta if request.params else None
            context = ClientRequestContext(session=session, request_id=key, meta=meta)
            answer = await session.dispatch_input_request(context, request)
            if isinstance(answer, ErrorData):
                raise MCPError.from_error_data(answer)
            answers[key] = answer
        return answers or None

    async def _mirrored(
        self, tool: Tool, params: CallToolRequestParams, options: Options
    ) -> CallToolResult | InputRequiredResult:
        """Send one `tools/call`, with its `Mcp-Param-…` headers (MCP 2026-07-28, server/tools, "x-mcp-header").

        The SDK takes what to mirror from the server's list, so that is read once, before the first call of a tool with
        such arguments, and again where the server says that the headers are not what it wants.
        """
        from mcp import MCPError
        from mcp_types import HEADER_MISMATCH

        if tool.name not in self._listed and self._mirrors(tool):
            await self._list(tool.name, options)
        try:
            return await self._request(params, options)
        except MCPError as mismatch:
            if mismatch.code != HEADER_MISMATCH or not self.modern or not await self._list(tool.name, options):
                raise
        return await self._request(params, options)

    async def _request(self, params: CallToolRequestParams, options: Options) -> CallToolResult | InputRequiredResult:
        from mcp_types import CallToolRequest

        return await self.client.session.send_request(
            CallToolRequest(params=params),
            _answer(),
            request_read_timeout_seconds=math.inf if options.timeout is None else options.timeout,
            progress_callback=_awaited(options.on_progress),
        )

    def _mirrors(self, tool: Tool) -> bool:
        """Whether calls of the tool have headers: over HTTP only, and from 2026-07-28 on."""
        from mcp import StdioServerParameters
        from mcp.server import MCPServer
        from mcp.server.lowlevel import Server

        if isinstance(self.client.server, StdioServerParameters | Server | MCPServer) or not self.modern:
            return False
        return _has_header(tool.definition["inputSchema"])

    async def _list(self, name: str, options: Options) -> bool:
        """Have the SDK read the server's list as far as the tool; whether it could."""
        import anyio
        from mcp import MCPError
        from pydantic import ValidationError

        cursor: str | None = None
        try:
            with anyio.fail_after(options.timeout):
                for _ in range(_PAGES):
                    page = await self.client.list_tools(cursor=cursor, cache_mode="refresh")
                    cursor = page.next_cursor
                    if cursor is None or any(tool.name == name for tool in page.tools):
                        break
        except (MCPError, TimeoutError, ValidationError) as error:
            _LOG.warning("calls of %r go without Mcp-Param headers: tools/list cannot be read: %r", name, error)
            return False
        self._listed.add(name)
        return True


def _awaited(on_progress: OnProgress | None) -> ProgressFnT | None:
    """The callback as the SDK wants it."""
    if on_progress is None:
        return None

    async def tell(progress: float, total: float | None, message: str | None) -> None:
        telling = on_progress(progress, total, message)
        if inspect.isawaitable(telling):
            await telling

    return tell


@cache
def _answer() -> TypeAdapter[CallToolResult | InputRequiredResult]:
    from mcp_types import CallToolResult, InputRequiredResult
    from pydantic import TypeAdapter

    return TypeAdapter(CallToolResult | InputRequiredResult)


def _has_header(schema: Any) -> bool:
    """Whether a property, reached through `properties` alone, is mirrored into a header."""
    properties = schema.get("properties") if isinstance(schema, Mapping) else None
    if not isinstance(properties, Mapping):
        return False
    return any(
        isinstance(below, Mapping) and ("x-mcp-header" in below or _has_header(below)) for below in properties.values()
    )
