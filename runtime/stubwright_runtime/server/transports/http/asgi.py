"""Builds ASGI applications from packages."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Final

from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import BaseRoute, Route

from ....observability.logs import redact_library_logs
from ....observability.scope import SCOPE
from ....observability.scope import Scope as LogScope
from ....state.store import MEMORY
from ....values.sanitizing import clean
from ...app.builder import build_core
from ...app.toolsets import HEADER, REQUESTED
from ...core.principal import find_current
from ...core.streams import LISTENERS, LISTENERS_EACH, Streams
from ...execution.threads import THREADS
from .cors import CorsPolicy, check_places
from .endpoint import HttpEndpoint
from .headers import Allowlist
from .health import make_routes as health_routes
from .listener.direct import Endpoint
from .resumption.replay import Archive
from .resumption.session_announcer import SessionAnnouncer
from .resumption.shared_replay import Resumption, SharedReplay

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence
    from typing import Unpack

    from starlette.types import ASGIApp, Receive, Scope, Send

    from ....package import Package
    from ...app.core import Core
    from ...core.access_tokens import TokenVerifier
    from ...core.task_engine import TaskEngine
    from ...observability.audit import Audit
    from ...options import HttpOptions
    from .resumption.log import EventLog

_LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")

IDLE: Final = 1800.0
"""The default idle timeout of sessions in seconds."""

SESSIONS: Final = 2000
"""The default maximum number of open sessions; at the limit, a new session receives HTTP 503."""


def package_app(
    package: Package,
    handlers: object,
    *,
    state: str = MEMORY,
    audit: Audit | None = None,
    threads: int = THREADS,
    toolset: str | None = None,
    tasks: TaskEngine | None = None,
    **options: Unpack[HttpOptions],
) -> Starlette:
    """Return a package's server as an ASGI application.

    Args:
        package: The package.
        handlers: See `build_server`.
        state: See `build_server`.
        audit: See `build_server`.
        threads: See `build_server`.
        toolset: See `build_server`.
        tasks: See `build_server`.
        options: See `asgi_app`.

    Raises:
        OSError: See `build_server`.
        TypeError: See `build_server` and `check_places`.
        ValueError: See `build_server`, `asgi_app` and `check_places`.
        UnsupportedManifestError: See `build_server`.
    """
    check_places(options.get("path", ""), options.get("allowed_hosts", ()), options.get("allowed_origins", ()))
    return asgi_app(
        build_core(
            package,
            handlers,
            state=state,
            audit=audit,
            threads=threads,
            toolsets=() if toolset is None else (toolset,),
            tasks=tasks,
        ),
        **options,
    )


def asgi_app(
    core: Core,
    *,
    path: str = "/mcp",
    allowed_hosts: Sequence[str] = (),
    allowed_origins: Sequence[str] = (),
    token_verifier: TokenVerifier | None = None,
    session_idle_timeout: float = IDLE,
    max_sessions: int = SESSIONS,
    max_listeners: int = LISTENERS,
    max_listeners_each: int = LISTENERS_EACH,
    stateless: bool = False,
    health: bool = False,
) -> Starlette:
    """Return the server as an ASGI application, which also has the server as `state.server`.

    Args:
        core: The server, without a transport.
        path: The endpoint's path, with or without a trailing slash.
        allowed_hosts: Allowed values of the `Host` header besides localhost, with or without a port, such as
            `api.example.com` or `api.example.com:8443`. Pages from these hosts (`Origin`) are allowed, too. `*` allows
            all hosts.
        allowed_origins: Origins of other web pages to allow, such as `https://app.example.com`.
        token_verifier: Verifies bearer tokens; by default from the manifest's `auth`. Without either, any caller is
            allowed.
        session_idle_timeout: The idle timeout of sessions in seconds (MCP 2025-11-25 and earlier).

        max_sessions: The maximum number of open sessions.
        max_listeners: The maximum number of open `subscriptions/listen` streams (MCP 2026-07-28 and later).
        max_listeners_each: The maximum number of these streams per caller; callers without a token count as one caller.
        stateless: True to serve without sessions, so that any process can also answer requests that use MCP 2025-11-25
            or earlier. These clients receive no requests and no change notifications, and cannot resume streams.
        health: True to serve `/livez` and `/readyz`.

    Raises:
        ValueError: A limit is not positive, or an origin is invalid.
    """
    all_hosts = [*_LOCAL, *allowed_hosts]
    is_protected = "*" not in all_hosts
    hosts = [form for host in all_hosts for form in ([host] if ":" in host.rpartition("]")[2] else [host, f"{host}:*"])]
    origins = [f"{scheme}://{host}" for host in hosts for scheme in ("http", "https")]
    shared = CorsPolicy(allowed_origins)
    origins += shared.origins
    core.listeners.streams = Streams(max_listeners, max_listeners_each)
    announcer = SessionAnnouncer(core.store) if core.store.is_shared and not stateless else None
    core.has_sessions = not stateless
    direct = HttpEndpoint(
        core,
        Allowlist(hosts, all_=not is_protected),
        Allowlist(origins, all_=not is_protected),
        most=max_sessions,
        idle=session_idle_timeout,
        stateless=stateless,
        open_log=_logs(announcer),
        elsewhere=None if announcer is None else Resumption(announcer),
    )
    endpoint: ASGIApp = direct
    direct_endpoint: Endpoint | None = Endpoint(direct, path, core.package.name)
    routes: list[BaseRoute] = []
    if token_verifier is not None or core.package.manifest.get("auth"):
        from .protection import protect

        authentication, routes = protect(direct, core, token_verifier)
        direct_endpoint = Endpoint(direct, path, core.package.name, authentication)
        endpoint = authentication
    if shared.origins:
        direct_endpoint = None  # its responses have no CORS headers
    named = _endpoints(path, endpoint, core)
    if health:
        routes += health_routes(core)
    endpoints = {place: shared.wrap(app) for place, app in named.items()}
    routes[:0] = [Route(each, endpoint=app) for place, app in endpoints.items() for each in _spellings(place)]
    app = _Application(routes=routes, lifespan=lambda _: direct.run())
    app.paths, app.endpoint = frozenset(_spellings(path)), endpoints[path]
    # Instrumentation adds middleware to Starlette.
    app.direct_endpoint = None if app.user_middleware else direct_endpoint
    app.state.server = core
    redact_library_logs()
    return app


def _logs(announcer: SessionAnnouncer | None) -> Callable[[], EventLog]:
    if announcer is not None:
        return partial(SharedReplay, announcer)
    archive = Archive()
    return lambda: archive.open_session(find_current().key)


class _Application(Starlette):
    """The ASGI application. It bypasses Starlette's router unless the embedding program has added middleware."""

    paths: frozenset[str]
    endpoint: ASGIApp
    direct_endpoint: Endpoint | None
    """The endpoint for the fast path of the server's own listener, if there is no middleware."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        is_direct = scope["type"] == "http" and scope["path"] in self.paths and not scope.get("root_path")
        if is_direct and not self.user_middleware and not self.exception_handlers:
            await self.endpoint(scope, receive, send)
        else:
            await super().__call__(scope, receive, send)


_TOOLSET: Final = HEADER.encode()


class _NamedEndpoint:
    """An endpoint of all tools or of one toolset. Log lines of its requests contain the package name."""

    def __init__(self, app: ASGIApp, core: Core, toolset: str | None = None) -> None:
        self.app = app
        self._core = core
        self._toolset: tuple[str, ...] = () if toolset is None else (toolset,)
        self._scope = LogScope(core.package.name)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        asked = self._toolset
        for name, value in scope["headers"]:
            if name == _TOOLSET:  # proxies may join headers (RFC 9110, 5.3)
                asked = (*asked, *(each.strip() for each in value.decode("latin-1").split(",")))
        if unknown := [name for name in asked if name not in self._core.toolsets] if asked else None:
            words = f"No toolset {clean(unknown[0])!r}; {self._core.toolsets.describe()}"
            await JSONResponse({"error": words}, status_code=400)(scope, receive, send)
            return
        token = REQUESTED.set(asked) if asked else None
        named = SCOPE.set(self._scope)
        try:
            await self.app(scope, receive, send)
        finally:
            SCOPE.reset(named)
            if token is not None:
                REQUESTED.reset(token)


def _endpoints(path: str, inner: ASGIApp, core: Core) -> dict[str, ASGIApp]:
    below = {f"{path.rstrip('/')}/{name}": _NamedEndpoint(inner, core, name) for name in core.toolsets}
    return {path: _NamedEndpoint(inner, core), **below}


def _spellings(path: str) -> list[str]:
    # Clients use both, and few follow redirects for a POST.
    bare = path.rstrip("/")
    return [bare, f"{bare}/"] if bare else ["/"]
