"""Wraps the caller's own MCP client or session, recognized by its methods, so that the SDK need not be imported."""

from __future__ import annotations

import math
from contextlib import AsyncExitStack
from datetime import timedelta
from typing import TYPE_CHECKING, Any, TypeVar

import mcp_types as types
from mcp_types.version import LATEST_HANDSHAKE_VERSION

from .client import MOST_ROUNDS
from .mcp_error import MCPError
from .requests import Requests

if TYPE_CHECKING:
    from types import TracebackType

    from pydantic import BaseModel

    from ..core.options import ProgressCallback

_Result = TypeVar("_Result", bound="BaseModel")


def find_session(target: Any) -> Any:
    """Return the open session of a client, or `target` itself if it is a session; otherwise `None`."""
    if callable(getattr(target, "send_request", None)):
        return target
    try:
        return getattr(target, "session", None)
    except RuntimeError:  # a client that is not open raises an exception here
        return None


class WrappedClient(Requests):
    """Sends requests through a `ClientSession`, or a client with a `session`, such as `mcp.Client` or FastMCP's.

    The caller's client receives notifications and questions. A client that is not open yet is opened on entry and
    closed on exit; an open client stays open.
    """

    read_timeout_seconds: float | None = None
    message_handler: Any = None

    def __init__(self, wrapped: Any) -> None:
        """Wrap a client or session."""
        self._exits = AsyncExitStack()
        self.wrapped = wrapped
        self.server = getattr(wrapped, "server", None)
        self.input_required_max_rounds = getattr(wrapped, "input_required_max_rounds", MOST_ROUNDS)

    @property
    def session(self) -> WrappedClient:
        """The wrapper itself, which sends the requests."""
        return self

    @property
    def _session(self) -> Any:
        """The open session. Raises MCPError if the caller has closed the client."""
        if (session := find_session(self.wrapped)) is None:
            raise MCPError(code=types.CONNECTION_CLOSED, message="the wrapped client was closed")
        return session

    @property
    def _is_version_1(self) -> bool:
        """True for the sessions of SDK version 1, whose revisions all have a handshake."""
        return not hasattr(type(self._session), "protocol_version")

    @property
    def protocol_version(self) -> str:
        """The negotiated revision. For SDK version 1, which does not report it, the newest revision of that version."""
        return LATEST_HANDSHAKE_VERSION if self._is_version_1 else self._session.protocol_version

    @property
    def server_info(self) -> types.Implementation | None:
        """The server's name and version, or `None` if unknown."""
        return getattr(self._session, "server_info", None)

    @property
    def server_capabilities(self) -> types.ServerCapabilities:
        """The server's capabilities."""
        if not self._is_version_1:
            return self._session.server_capabilities or types.ServerCapabilities()
        known = self._session.get_server_capabilities()
        return types.ServerCapabilities() if known is None else types.ServerCapabilities(**known.model_dump())

    @property
    def instructions(self) -> str | None:
        """The server's instructions for models, or `None`."""
        return getattr(self._session, "instructions", None)

    async def __aenter__(self) -> WrappedClient:
        """Open the client if it is not open. Raises RuntimeError for a session that is not initialized."""
        if find_session(self.wrapped) is None:
            await self._exits.enter_async_context(self.wrapped)
        if self.protocol_version is None:
            raise RuntimeError("the session is not initialized; await its `initialize()` first")
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        """Close the client if it was not open before."""
        await self._exits.aclose()

    async def send_request(
        self,
        request: types.Request[Any, Any],
        result_type: type[_Result],
        request_read_timeout_seconds: float | None = None,
        *,
        progress_callback: ProgressCallback | None = None,
    ) -> _Result:
        """Send a request and return its result."""
        seconds: Any = request_read_timeout_seconds
        if seconds is not None and self._is_version_1:
            seconds = timedelta.max if math.isinf(seconds) else timedelta(seconds=seconds)
        answer: _Result = await self._session.send_request(
            request, result_type, request_read_timeout_seconds=seconds, progress_callback=progress_callback
        )
        return answer

    async def dispatch_input_request(self, context: Any, request: types.InputRequest) -> Any:
        """Return the response from the caller's callback to an input request, or an error."""
        return await self._session.dispatch_input_request(context, request)

    async def list_tools(self, *, cursor: str | None = None) -> types.ListToolsResult:
        """Fetch a page of the tool list. A session of SDK version 2 then mirrors the listed parameters in headers."""
        if self._is_version_1:
            return await super().list_tools(cursor=cursor)
        page: types.ListToolsResult = await self._session.list_tools(params=types.PaginatedRequestParams(cursor=cursor))
        return page
