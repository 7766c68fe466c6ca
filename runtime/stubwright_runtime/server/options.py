"""The options of generated `build_server` and `asgi_app` next to handlers, for type checkers. All are optional."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .core.access_tokens import TokenVerifier
    from .core.task_engine import TaskEngine
    from .observability.audit import Audit


class _Options(TypedDict, total=False):
    state: str
    """The URL of the store of state: `memory://`, the default, is this process; `redis://HOST:PORT` is shared by many
    processes, and outlives them."""

    audit: Audit | None
    """The destination of call records: a function that takes a `CallRecord`, and is called in its own thread, or a
    file that gets a line of JSON for each; `"-"` is standard error. By default there is none."""

    toolset: str | None
    """The one of the manifest's toolsets that the server is for; by default it has all tools, and over HTTP an endpoint
    of its own for each toolset, such as `/mcp/triage`."""

    tasks: TaskEngine | None
    """The engine that carries tasks between processes which share their state; by default a stream in the Redis of
    `state`."""

    threads: int
    """The number of threads for plain `def` methods in all, by default 64. Each method takes at most half of them; a
    call is refused after waiting five seconds for a thread.
    """


class ServerOptions(_Options, total=False):
    """Options of `build_server`."""

    local_scopes: Sequence[str]
    """The scopes of callers that use neither a token nor HTTP; by default none."""


class HttpOptions(TypedDict, total=False):
    """Options of a server over HTTP."""

    path: str
    """The path of the endpoint, by default `/mcp`."""

    allowed_hosts: Sequence[str]
    """Values of the `Host` header to answer next to this machine's own, such as `api.example.com` or
    `api.example.com:*`; any other is refused, which protects against DNS rebinding. `*` allows all."""

    allowed_origins: Sequence[str]
    """Origins of other web pages that may call from a browser, such as `https://app.example.com`; by default none."""

    token_verifier: TokenVerifier | None
    """The verifier of bearer tokens; by default from the manifest's `auth`. Without both, any caller may call."""

    session_idle_timeout: float
    """Seconds without a request after which the session of a client of 2025-11-25 or older ends, by default 1800. Newer
    clients have no session."""

    max_sessions: int
    """The maximum number of open sessions, by default 2000. At the limit, a new one is answered HTTP 503."""

    max_listeners: int
    """The maximum number of open streams of `subscriptions/listen`, by default 1000. At the limit, a new one is
    answered HTTP 503."""

    max_listeners_each: int
    """The maximum number of these for one caller, by default 100. At the limit, a new one is answered HTTP 429. Callers
    without a token share all of them."""

    stateless: bool
    """True if clients of 2025-11-25 or older have no sessions either, so that each of their requests may come to any of
    several processes. They get no questions and no notifications of changes, and cannot resume. By default they have
    sessions."""

    health: bool
    """True to answer `/livez` and `/readyz`; by default false."""


class AppOptions(_Options, HttpOptions, total=False):
    """Options of `asgi_app`."""
