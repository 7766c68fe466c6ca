"""Protocols that our untyped client and the SDK's clients implement, so that the SDK need not be imported."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from contextlib import AbstractAsyncContextManager
    from types import TracebackType

    import mcp_types as types

    from ...in_process import InProcessServer


class UntypedClient(Protocol):
    """An untyped client: `mcp.Client`, or our own client for a URL, a command or a generated server.

    Attributes:
        server: The server, or the connection to it.
        read_timeout_seconds: The default request timeout; `None` for no timeout.
        input_required_max_rounds: The limit of `input_required` rounds for one request.
        message_handler: Called with each notification.
    """

    server: Any
    read_timeout_seconds: float | None
    input_required_max_rounds: int
    message_handler: Any

    @property
    def session(self) -> Any:
        """The session, which sends requests."""
        ...

    @property
    def protocol_version(self) -> str:
        """The negotiated revision."""
        ...

    @property
    def server_info(self) -> types.Implementation | None:
        """The server's name and version, or `None` if unknown."""
        ...

    @property
    def server_capabilities(self) -> types.ServerCapabilities:
        """The server's capabilities."""
        ...

    @property
    def instructions(self) -> str | None:
        """The server's instructions for models, or `None`."""
        ...

    async def __aenter__(self) -> Any:
        """Open the connection."""
        ...

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None:
        """Close the connection."""
        ...

    async def list_tools(self, *, cursor: str | None = None) -> types.ListToolsResult:
        """Fetch a page of the tool list."""
        ...

    async def list_prompts(self, *, cursor: str | None = None) -> types.ListPromptsResult:
        """Fetch a page of the prompt list."""
        ...

    async def list_resources(self, *, cursor: str | None = None) -> types.ListResourcesResult:
        """Fetch a page of the resource list."""
        ...

    async def list_resource_templates(self, *, cursor: str | None = None) -> types.ListResourceTemplatesResult:
        """Fetch a page of the resource template list."""
        ...

    async def call_tool(self, name: str, arguments: dict[str, Any] | None = None) -> types.CallToolResult:
        """Call a tool."""
        ...

    async def read_resource(self, uri: str) -> types.ReadResourceResult:
        """Read a resource."""
        ...

    async def get_prompt(self, name: str, arguments: dict[str, str] | None = None) -> types.GetPromptResult:
        """Get a prompt."""
        ...


class SdkServer(Protocol):
    """An SDK server object: `mcp.server.Server` or `mcp.server.MCPServer`."""

    @property
    def name(self) -> str:
        """The server's name."""
        ...

    @property
    def run(self) -> Callable[..., Any]:
        """The coroutine function that serves a transport."""
        ...


class SdkSession(Protocol):
    """An open session of any SDK version."""

    @property
    def send_request(self) -> Callable[..., Any]:
        """The coroutine function that sends a request."""
        ...


Target: TypeAlias = "str | Sequence[str] | InProcessServer | SdkServer | SdkSession | AbstractAsyncContextManager[Any]"
"""The target of a connection: a URL, a command, a server object, a client, a session, or an SDK transport."""
