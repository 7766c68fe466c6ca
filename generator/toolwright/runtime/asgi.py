"""The server as an ASGI application: Streamable HTTP, who may call it, and what is kept for those who come back.

Takes the SDK's server; gives a Starlette application (MCP 2025-11-25, basic/transports).
"""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING, Any, Final

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend, RequireAuthMiddleware
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.streamable_http_manager import StreamableHTTPASGIApp, StreamableHTTPSessionManager
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.routing import Route

from .logs import guard

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp.server.auth.provider import TokenVerifier
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http import EventCallback
    from mcp_types import JSONRPCMessage
    from starlette.types import ASGIApp

_LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")

_RETRY: Final = 1000
"""Milliseconds after which a client that lost its stream should come back."""

_EVENTS: Final = 512
"""Messages that are kept of one session."""

_BYTES: Final = 4 * 1024 * 1024
"""How large these may be together, as JSON; the last one is kept however large it is."""


def asgi_app(
    server: Server[Any],
    *,
    path: str = "/mcp",
    allowed_hosts: Sequence[str] = (),
    token_verifier: TokenVerifier | None = None,
) -> Starlette:
    """The server as an ASGI application, whose `state.server` it is.

    Args:
        server: What `build_server` gave.
        path: Where the endpoint is.
        allowed_hosts: Values of the `Host` header to answer beside this machine's own, with or without a port, such as
            `api.example.com` or `api.example.com:8443`. Pages of these hosts may call, too (`Origin`). `*` allows all.
        token_verifier: Checks bearer tokens; without one, anybody may call.
    """
    sessions = _Sessions(server, retry_interval=_RETRY, security_settings=_security([*_LOCAL, *allowed_hosts]))
    endpoint: ASGIApp = StreamableHTTPASGIApp(sessions)
    middleware = []
    if token_verifier is not None:
        endpoint = RequireAuthMiddleware(endpoint, [])
        middleware = [
            Middleware(AuthenticationMiddleware, backend=BearerAuthBackend(token_verifier)),
            Middleware(AuthContextMiddleware),
        ]
    app = Starlette(routes=[Route(path, endpoint=endpoint)], middleware=middleware, lifespan=lambda _: sessions.run())
    app.state.server = server
    guard()
    return app


class _Sessions(StreamableHTTPSessionManager):
    """The SDK's sessions, each with a store of its own: its streams are called alike in all of them."""

    @property
    def event_store(self) -> EventStore | None:
        """A new store; the SDK asks when it opens a session."""
        return Replay()

    @event_store.setter
    def event_store(self, _store: EventStore | None) -> None:
        """The SDK's constructor sets one for all sessions."""


class Replay(EventStore):
    """The last messages of one session, for a client that lost a stream; what is gone is lost, as it would be without.

    (MCP 2025-11-25, basic/transports, "Resumability and Redelivery".)
    """

    def __init__(self, events: int = _EVENTS, size: int = _BYTES) -> None:
        """Say how many messages are kept, and how many bytes of JSON."""
        self._kept: deque[tuple[int, str, JSONRPCMessage | None, int]] = deque()
        self._most = events
        self._largest = size
        self._size = 0
        self._number = 0

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """Keep a message; gives its id, which names its stream."""
        self._number += 1
        size = 0 if message is None else len(message.model_dump_json(by_alias=True, exclude_none=True))
        self._kept.append((self._number, stream_id, message, size))
        self._size += size
        while len(self._kept) > self._most or (self._size > self._largest and len(self._kept) > 1):
            self._size -= self._kept.popleft()[-1]
        return f"{self._number}/{stream_id}"

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Send what came after an event on its stream; gives the stream, `None` where nothing is known of it."""
        number, _, stream_id = last_event_id.partition("/")
        kept = [one for one in self._kept if one[1] == stream_id]
        if not kept or not number.isdecimal() or len(number) > len(str(self._number)):
            return None
        for position, _, message, _ in kept:
            if position > int(number) and message is not None:
                await send_callback(EventMessage(message, f"{position}/{stream_id}"))
        return stream_id


def _security(hosts: Sequence[str]) -> TransportSecuritySettings:
    """Protection against DNS rebinding: hosts and origins to answer, each at the port it names or at any."""
    if "*" in hosts:
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    named = [form for host in hosts for form in ([host] if _has_port(host) else [host, f"{host}:*"])]
    origins = [f"{scheme}://{host}" for host in named for scheme in ("http", "https")]
    return TransportSecuritySettings(allowed_hosts=named, allowed_origins=origins)


def _has_port(host: str) -> bool:
    return ":" in host.rpartition("]")[2]
