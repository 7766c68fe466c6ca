"""The option types for the generated `build_server` and `asgi_app`. All options are optional."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .core.access_tokens import TokenVerifier
    from .core.task_engine import TaskEngine
    from .observability.audit import Audit


class _Options(TypedDict, total=False):
    state: str
    """The URL of the store: `memory://` (the default) is this process; `redis://HOST:PORT` is shared by processes and
    outlives them.
    """

    audit: Audit | None
    """The destination of call records: a function that takes a `CallRecord` and is called in a separate thread, or a
    file with one line of JSON per record; `"-"` is standard error. By default, calls are not recorded.
    """

    toolset: str | None
    """The server's toolset. By default, it has all tools and, over HTTP, an additional endpoint for each toolset,
    such as `/mcp/triage`."""

    tasks: TaskEngine | None
    """The task engine for processes with shared state; by default a stream in the Redis at `state`."""

    threads: int
    """The total number of threads for plain `def` handlers; by default 64. Each method uses at most half of them. A
    call that waits five seconds for a thread is refused.
    """


class ServerOptions(_Options, total=False):
    """Options for `build_server`."""

    local_scopes: Sequence[str]
    """The scopes of local callers, over stdio or in-process; by default none."""


class HttpOptions(TypedDict, total=False):
    """HTTP server options."""

    path: str
    """The path of the endpoint, by default `/mcp`."""

    allowed_hosts: Sequence[str]
    """Allowed values of the `Host` header besides localhost, such as `api.example.com` or `api.example.com:*`. Others
    are refused, which protects against DNS rebinding. `*` allows all."""

    allowed_origins: Sequence[str]
    """Origins of other web pages to allow, such as `https://app.example.com`; by default none."""

    token_verifier: TokenVerifier | None
    """Verifies bearer tokens; by default, the manifest's `auth` is used. If the manifest has no `auth`, any caller is
    allowed."""

    session_idle_timeout: float
    """The idle timeout of sessions in seconds, by default 1800. Sessions exist in MCP 2025-11-25 and earlier."""

    max_sessions: int
    """The maximum number of open sessions, by default 2000. At the limit, a new session receives HTTP 503."""

    max_listeners: int
    """The maximum number of open `subscriptions/listen` streams, by default 1000. At the limit, a new stream receives
    HTTP 503.
    """

    max_listeners_each: int
    """The maximum number of these streams per caller, by default 100. At the limit, a new stream receives HTTP 429.
    Only the total limit applies to callers without a token.
    """

    stateless: bool
    """True to serve clients that use MCP 2025-11-25 or earlier without sessions, so that any process can answer each
    request. They receive no requests and no change notifications, and cannot resume streams. By default, they have
    sessions.
    """

    health: bool
    """True to serve `/livez` and `/readyz`; by default false."""


class AppOptions(_Options, HttpOptions, total=False):
    """Options for `asgi_app`."""
