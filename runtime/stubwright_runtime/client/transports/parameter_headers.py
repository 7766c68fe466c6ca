"""The headers that mirror the arguments of a call (MCP 2026-07-28, server/tools, "x-mcp-header").

The SDK takes what to mirror from the server's list, so that is read once, before the first call of a tool with such
arguments, and again where the server reports that the headers are not what it wants.
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
    """The headers of calls over one connection."""

    def __init__(self, client: UntypedClient) -> None:
        """Take a client; it is used when it is open."""
        self._client = client
        self._listed: set[str] = set()
        self._declared: dict[str, bool] = {}

    async def send_with_headers(
        self, tool: Tool, arguments: Json, seconds: float | None, send: Callable[[], Awaitable[_Answer]]
    ) -> _Answer:
        """Send a call with its headers.

        Args:
            tool: The tool.
            arguments: The arguments of the call.
            seconds: The time limit for reading the list; `None` for no limit.
            send: Sends the call, perhaps twice.

        Raises:
            ValueError: A mirrored integer is beyond ±(2^53 - 1) (SEP-2243).
        """
        has_header = self._declared.get(tool.name)
        if has_header is None:
            has_header = self._declared[tool.name] = _has_header(tool.definition["inputSchema"])
        if has_header and self._mirrors():
            refuse_unsafe_integers(tool.definition["inputSchema"], arguments)
            if tool.name not in self._listed:
                await self._list(tool.name, seconds)
        try:
            return await send()
        except MCPError as mismatch:
            if mismatch.code != HEADER_MISMATCH or not self._has_headers or not await self._list(tool.name, seconds):
                raise
        return await send()

    @property
    def _has_headers(self) -> bool:
        return Revision.from_date(self._client.protocol_version).has("parameter_headers")

    def _mirrors(self) -> bool:
        """Return whether calls have headers: over HTTP only, and from 2026-07-28 on."""
        server: object = self._client.server
        if not self._has_headers:
            return False
        if isinstance(server, RpcConnection):
            return server.over_http
        import mcp
        from mcp.server import MCPServer, Server

        return not isinstance(server, mcp.StdioServerParameters | Server | MCPServer | InProcessServer)

    async def _list(self, name: str, seconds: float | None) -> bool:
        """Make the SDK read the server's list up to the tool, and return whether the tool is listed."""
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
            log().warning("calls of %r go without Mcp-Param headers: tools/list cannot be read: %r", name, error)
            return False
        self._listed.add(name)
        return True


def refuse_unsafe_integers(schema: Any, arguments: Any, path: tuple[str, ...] = ()) -> None:
    """Refuse integers that are mirrored into headers and that JavaScript cannot represent (SEP-2243).

    Args:
        schema: The schema of the arguments.
        arguments: The arguments.
        path: The properties above them.

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
            raise ValueError(f"`{shown}` goes into a header, and must be within ±{MAX_SAFE_INTEGER}; it is {value}")
        refuse_unsafe_integers(below, value, (*path, name))


def _has_header(schema: Any) -> bool:
    """Return whether a property, reached through `properties` alone, is mirrored into a header."""
    properties: Json = schema.get("properties") if is_mapping(schema) else None
    if not isinstance(properties, dict):
        return False
    return any(is_mapping(below) and ("x-mcp-header" in below or _has_header(below)) for below in properties.values())
