"""The server as an ASGI application: Streamable HTTP, who may call it, and how many sessions there may be.

Takes the SDK's server; gives a Starlette application (MCP 2025-11-25, basic/transports).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from pydantic import AnyHttpUrl, ConfigDict, TypeAdapter
from starlette.applications import Starlette
from starlette.routing import BaseRoute, Route

from ....observability.logs import named_after, redact_library_logs
from ....sdk.http import (
    StreamableHTTPASGIApp,
    StreamableHTTPSessionManager,
    TransportSecuritySettings,
    build_resource_metadata_url,
    create_protected_resource_routes,
)
from ....state.store import MEMORY
from ...core.principal import ANONYMOUS, current
from ...execution.threads import THREADS
from ...server import build_server
from .authentication import Authentication
from .bad_requests import BadRequests
from .health import routes as health_routes
from .replay import Archive
from .resumption import Awaited, Resumption, SharedReplay
from .streams import LISTENERS, LISTENERS_EACH, Bounded, Streams
from .uploads import Uploads

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Unpack

    from starlette.types import ASGIApp, Receive, Scope, Send

    from ....package import Package
    from ....sdk.auth import TokenVerifier
    from ....sdk.http import EventStore
    from ...observability.audit import Audit
    from ...options import HttpOptions
    from ...server import PackageServer

_LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")

_RETRY: Final = 1000
"""Milliseconds after which a client that lost its stream should come back."""

IDLE: Final = 1800.0
"""Seconds after which a session ends that has no request under way; its client has to begin a new one."""

SESSIONS: Final = 2000
"""Sessions that may be open; while they are, whoever wants to open another is answered HTTP 503."""


def _verifier(auth: Mapping[str, Any]) -> TokenVerifier:
    """What checks access tokens as the manifest says."""
    from ....policy.tokens import Tokens

    return Tokens(auth)


def package_app(
    package: Package,
    handlers: object,
    *,
    state: str = MEMORY,
    audit: Audit | None = None,
    threads: int = THREADS,
    **options: Unpack[HttpOptions],
) -> Starlette:
    """The server of a package as an ASGI application.

    Args:
        package: The package.
        handlers: As for `build_server`.
        state: As for `build_server`.
        audit: As for `build_server`.
        threads: As for `build_server`.
        options: As for `asgi_app`.

    Raises:
        OSError: As for `build_server`.
        TypeError: As for `build_server`.
        ValueError: As for `build_server` and `asgi_app`.
        Unserved: As for `build_server`.
    """
    return asgi_app(build_server(package, handlers, state=state, audit=audit, threads=threads), **options)


def asgi_app(
    server: PackageServer,
    *,
    path: str = "/mcp",
    allowed_hosts: Sequence[str] = (),
    token_verifier: TokenVerifier | None = None,
    session_idle_timeout: float = IDLE,
    max_sessions: int = SESSIONS,
    max_listeners: int = LISTENERS,
    max_listeners_each: int = LISTENERS_EACH,
    stateless: bool = False,
    health: bool = False,
) -> Starlette:
    """The server as an ASGI application, whose `state.server` it is.

    Args:
        server: What `build_server` gave.
        path: Where the endpoint is.
        allowed_hosts: Values of the `Host` header to answer beside this machine's own, with or without a port, such as
            `api.example.com` or `api.example.com:8443`. Pages of these hosts may call, too (`Origin`). `*` allows all.
        token_verifier: Checks bearer tokens; by default as the manifest's `auth` says. Without both, anybody may call.
        session_idle_timeout: Seconds after which a session ends that has no request under way (up to 2025-11-25; from
            2026-07-28 on there are no sessions).
        max_sessions: How many sessions may be open.
        max_listeners: How many streams of `subscriptions/listen` may be open (from 2026-07-28 on).
        max_listeners_each: How many of these one caller may have; callers without a token share all of them.
        stateless: Whether there are no sessions, so that requests up to 2025-11-25 may come to any process, too. Their
            clients are asked nothing, hear of no changes, and cannot come back for what they missed.
        health: Whether to answer `/livez` and `/readyz`.

    Raises:
        ValueError: One of the numbers is not positive.
    """
    security = _security([*_LOCAL, *allowed_hosts])
    server.limit_listeners(Streams(max_listeners, max_listeners_each))
    sessions = _Sessions(
        server,
        retry_interval=_RETRY,
        security_settings=security,
        session_idle_timeout=session_idle_timeout,
        max_sessions=max_sessions,
        stateless=stateless,
    )
    server.core.has_sessions = not stateless
    endpoint: ASGIApp = StreamableHTTPASGIApp(sessions)
    if server.core.store.is_shared and not stateless:
        sessions.awaited = Awaited(server.core.store)
        endpoint = Resumption(endpoint, sessions.awaited, security)
    endpoint = Uploads(BadRequests(Bounded(endpoint, every_get=stateless)))
    auth: Mapping[str, Any] | None = server.package.manifest.get("auth")
    verifier = _verifier(auth) if token_verifier is None and auth else token_verifier
    routes: list[BaseRoute] = []
    if verifier is not None:
        required = () if auth is None else auth.get("requiredScopes") or ()
        resource = None if auth is None else _url(auth.get("resource") or auth["audience"])
        if auth is not None and resource is not None:
            routes += _metadata(server, auth, resource)
        url = None if resource is None else str(build_resource_metadata_url(resource))
        audiences = () if auth is None else (auth["audience"], auth.get("resource") or auth["audience"])
        endpoint = Authentication(
            endpoint,
            verifier,
            required=required,
            metadata_url=url,
            scopes=server.core.scopes,
            audiences=audiences,
            recorder=server.core.recorder,
        )
    endpoint = _Named(endpoint, server.package.name)
    if health:
        routes += health_routes(server)
    app = Starlette(routes=[Route(path, endpoint=endpoint), *routes], lifespan=lambda _: sessions.run())
    app.state.server = server
    redact_library_logs()
    return app


class _Named:
    """The endpoint, whose lines of the log are those of its package."""

    def __init__(self, app: ASGIApp, package: str) -> None:
        self._app = app
        self._package = package

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        with named_after(self._package):
            await self._app(scope, receive, send)


def _metadata(server: PackageServer, auth: Mapping[str, Any], resource: AnyHttpUrl) -> list[Route]:
    """Where clients read who issues tokens for this server, and which scopes there are (RFC 9728)."""
    scopes = auth.get("requiredScopes") if server.core.scopes is None else server.core.scopes.every
    return create_protected_resource_routes(
        resource, [_url(auth["issuer"])], list(scopes or ()) or None, server.title or server.name
    )


def _url(text: str) -> AnyHttpUrl:
    """A URL as it is written: `https://example.com` gets no slash at its end, which another issuer would have."""
    return TypeAdapter(AnyHttpUrl, config=ConfigDict(url_preserve_empty_path=True)).validate_python(text)


class _Sessions(StreamableHTTPSessionManager):
    """The SDK's sessions, each with a store of its own: its streams are called alike in all of them."""

    app: PackageServer
    awaited: Awaited | None = None
    """Who waits for messages of sessions of other processes, where state is shared."""

    @property
    def event_store(self) -> EventStore | None:
        """A new store; the SDK asks when it opens a session."""
        return self._archive.session(_caller()) if self.awaited is None else SharedReplay(self.awaited)

    @event_store.setter
    def event_store(self, _store: EventStore | None) -> None:
        """The SDK's constructor sets one for all sessions."""
        self._archive = Archive()


def _caller() -> str:
    """Who sent the request that is being answered."""
    return current(over_http=True, user=ANONYMOUS).key


def _security(hosts: Sequence[str]) -> TransportSecuritySettings:
    """Protection against DNS rebinding: hosts and origins to answer, each at the port it names or at any."""
    if "*" in hosts:
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    named = [form for host in hosts for form in ([host] if _has_port(host) else [host, f"{host}:*"])]
    origins = [f"{scheme}://{host}" for host in named for scheme in ("http", "https")]
    return TransportSecuritySettings(allowed_hosts=named, allowed_origins=origins)


def _has_port(host: str) -> bool:
    return ":" in host.rpartition("]")[2]
