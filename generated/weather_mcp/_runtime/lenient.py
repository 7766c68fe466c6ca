# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""A transport of the SDK that is content with less than the SDK is.

Takes a transport; gives the same, but that a result without `resultType` is a complete one (MCP 2026-07-28, schema,
`Result`), and that an `inputSchema` without a `type` is one of objects, as all are (`Tool`). Servers that forget these
are common; the SDK refuses their results, and for one tool the list of all. It changes nothing else.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any, Self

if TYPE_CHECKING:
    from types import TracebackType

    from mcp.client import Transport
    from mcp.client._transport import ReadStream, TransportStreams
    from mcp.shared.message import SessionMessage


class Lenient(AbstractAsyncContextManager["TransportStreams", bool | None]):
    """The transport.

    Attributes:
        over_http: Whether requests have HTTP headers.
    """

    def __init__(self, transport: Transport, *, over_http: bool) -> None:
        """Take a transport that is not open yet."""
        self.over_http = over_http
        self._transport = transport

    async def __aenter__(self) -> TransportStreams:
        """Open it."""
        read, write = await self._transport.__aenter__()
        return _Reading(read), write

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        """Close it."""
        return await self._transport.__aexit__(exc_type, exc_val, exc_tb)


class _Reading:
    """What comes from the server."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception]) -> None:
        self._stream = stream

    @property
    def last_context(self) -> Any:
        """The context of what came last, where the stream knows it."""
        return getattr(self._stream, "last_context", None)

    async def receive(self) -> SessionMessage | Exception:
        return _completed(await self._stream.receive())

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        return _completed(await self._stream.__anext__())

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(exc_type, exc_val, exc_tb)


def _completed(item: SessionMessage | Exception) -> SessionMessage | Exception:
    """The item, with `resultType` where it is a result. Revisions that do not know it ignore it."""
    from mcp_types import JSONRPCResponse

    if not isinstance(item, Exception) and isinstance(item.message, JSONRPCResponse):
        result = item.message.result
        result.setdefault("resultType", "complete")
        tools = result.get("tools")
        for tool in tools if isinstance(tools, list) else ():
            if isinstance(tool, dict) and isinstance(tool.get("inputSchema"), dict):
                tool["inputSchema"].setdefault("type", "object")
    return item
