"""The server as an ASGI application: Streamable HTTP, who may call it, and how many sessions there may be.

Takes the SDK's server; gives a Starlette application (MCP 2025-11-25, basic/transports).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import (
    BearerAuthBackend,
    RequireAuthMiddleware,
)
from mcp.server.streamable_http_manager import (
    StreamableHTTPASGIApp,
    StreamableHTTPSessionManager,
)
from mcp.server.transport_security import TransportSecuritySettings
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.routing import Route

from ..logs import guard
from .bad_requests import BadRequests
from .replay import Archive
from .uploads import Uploads

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp.server.auth.provider import TokenVerifier
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http import EventStore
    from starlette.types import ASGIApp

_LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")

_RETRY: Final = 1000
"""Milliseconds after which a client that lost its stream should come back."""

IDLE: Final = 1800.0
"""Seconds after which a session ends that has no request under way; its client has to begin a new one."""

SESSIONS: Final = 2000
"""Sessions that may be open; while they are, whoever wants to open another is answered HTTP 503."""


def asgi_app(
    server: Server[Any],
    *,
    path: str = "/mcp",
    allowed_hosts: Sequence[str] = (),
    token_verifier: TokenVerifier | None = None,
    session_idle_timeout: float = IDLE,
    max_sessions: int = SESSIONS,
) -> Starlette:
    """The server as an ASGI application, whose `state.server` it is.

    Args:
        server: What `build_server` gave.
        path: Where the endpoint is.
        allowed_hosts: Values of the `Host` header to answer beside this machine's own, with or without a port, such as
            `api.example.com` or `api.example.com:8443`. Pages of these hosts may call, too (`Origin`). `*` allows all.
        token_verifier: Checks bearer tokens; without one, anybody may call.
        session_idle_timeout: Seconds after which a session ends that has no request under way (up to 2025-11-25; from
            2026-07-28 on there are no sessions).
        max_sessions: How many sessions may be open.

    Raises:
        ValueError: One of the two is not positive.
    """
    sessions = _Sessions(
        server,
        retry_interval=_RETRY,
        security_settings=_security([*_LOCAL, *allowed_hosts]),
        session_idle_timeout=session_idle_timeout,
        max_sessions=max_sessions,
    )
    endpoint: ASGIApp = Uploads(BadRequests(StreamableHTTPASGIApp(sessions)))
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
        return self._archive.session()

    @event_store.setter
    def event_store(self, _store: EventStore | None) -> None:
        """The SDK's constructor sets one for all sessions."""
        self._archive = Archive()


def _security(hosts: Sequence[str]) -> TransportSecuritySettings:
    """Protection against DNS rebinding: hosts and origins to answer, each at the port it names or at any."""
    if "*" in hosts:
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    named = [form for host in hosts for form in ([host] if _has_port(host) else [host, f"{host}:*"])]
    origins = [f"{scheme}://{host}" for host in named for scheme in ("http", "https")]
    return TransportSecuritySettings(allowed_hosts=named, allowed_origins=origins)


def _has_port(host: str) -> bool:
    return ":" in host.rpartition("]")[2]
