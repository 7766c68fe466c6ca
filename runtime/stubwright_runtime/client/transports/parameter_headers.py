"""Headers that mirror a call's arguments (MCP 2026-07-28, server/tools, "x-mcp-header").

The server's `tools/list` defines which arguments to mirror. The client reads that list before the first call to a tool
with mirrored arguments, and again after a header mismatch.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeVar

from mcp_types import HEADER_MISMATCH

from ...in_process import InProcessServer
from ...mcp.revisions import Revision
from ...mcp.vocabulary import MAX_SAFE_INTEGER
from ...observability.logs import log
from ...values.json import Json, is_mapping
from ..features.list_pages import fetch_pages
from ..rpc.connection import RpcConnection
from ..rpc.mcp_error import MCPError
from ..rpc.requests import Requests

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from mcp_types import ListToolsResult

    from ...package import Tool
    from ..rpc.untyped import UntypedClient

_Answer = TypeVar("_Answer")


class ParameterHeaders:
    """Sends calls over one connection, with the headers that mirror their arguments."""

    def __init__(self, client: UntypedClient) -> None:
        """Prepare to send calls through a client, which does not have to be open yet."""
        self._client = client
        self._listed: set[str] = set()
        self._declared: dict[str, bool] = {}

    async def send_with_headers(
        self,
        tool: Tool,
        seconds: float | None,
        send: Callable[[dict[str, Any]], Awaitable[_Answer]],
        params: dict[str, Any],
    ) -> _Answer:
        """Send a call with the headers that mirror its arguments.

        Args:
            tool: The tool.
            seconds: The timeout for listing tools; `None` for no limit.
            send: Sends the call; can be called twice.
            params: The call's parameters.

        Raises:
            ValueError: A mirrored integer is beyond ±(2^53 - 1) (SEP-2243).
        """
        has_header = self._declared.get(tool.name)
        if has_header is None:
            has_header = self._declared[tool.name] = _has_header(tool.definition["inputSchema"])
        if has_header and self._mirrors():
            refuse_unsafe_integers(tool.definition["inputSchema"], params["arguments"])
            if tool.name not in self._listed:
                await self._list(tool.name, seconds)
        try:
            return await send(params)
        except MCPError as mismatch:
            if mismatch.code != HEADER_MISMATCH or not self._mirrors() or not await self._list(tool.name, seconds):
                raise
        return await send(params)

    @property
    def _has_headers(self) -> bool:
        return Revision.from_date(self._client.protocol_version).has("parameter_headers")

    def _mirrors(self) -> bool:
        """Return whether the connection mirrors arguments, which requires HTTP and MCP 2026-07-28 or later."""
        server: object = self._client.server
        if not self._has_headers:
            return False
        if isinstance(server, RpcConnection):
            return server.over_http
        import mcp
        from mcp.server import MCPServer, Server

        return not isinstance(server, mcp.StdioServerParameters | Server | MCPServer | InProcessServer)

    async def _list(self, name: str, seconds: float | None) -> bool:
        """List the server's tools up to the tool `name`, and return whether the list is valid."""
        import anyio
        from pydantic import ValidationError

        async def fetch(cursor: str | None) -> ListToolsResult:
            client: Any = self._client
            without_cache = {} if isinstance(client, Requests) else {"cache_mode": "refresh"}
            page: ListToolsResult = await client.list_tools(cursor=cursor, **without_cache)
            return page

        try:
            with anyio.fail_after(seconds):
                async for page in fetch_pages(fetch):
                    if any(tool.name == name for tool in page.tools):
                        break
        except (MCPError, RuntimeError, TimeoutError, ValidationError) as error:
            log().warning("sending calls to %r without Mcp-Param headers: tools/list cannot be read: %r", name, error)
            return False
        self._listed.add(name)
        return True


def refuse_unsafe_integers(schema: Any, arguments: Any, path: tuple[str, ...] = ()) -> None:
    """Reject mirrored integers that JavaScript cannot represent (SEP-2243).

    Args:
        schema: The arguments' schema.
        arguments: The arguments.
        path: The path of the object that contains the arguments.

    Raises:
        ValueError: An integer is beyond ±(2^53 - 1).
    """
    properties: Json = schema.get("properties") if is_mapping(schema) else None
    if not isinstance(properties, dict) or not is_mapping(arguments):
        return
    for name, below in properties.items():
        value = arguments.get(name)
        if is_mapping(below) and "x-mcp-header" in below and type(value) is int and abs(value) > MAX_SAFE_INTEGER:
            shown = ".".join((*path, name))
            raise ValueError(f"`{shown}` is sent in a header and must be within ±{MAX_SAFE_INTEGER}, not {value}")
        refuse_unsafe_integers(below, value, (*path, name))


def _has_header(schema: Any) -> bool:
    properties: Json = schema.get("properties") if is_mapping(schema) else None
    if not isinstance(properties, dict):
        return False
    return any(is_mapping(below) and ("x-mcp-header" in below or _has_header(below)) for below in properties.values())
