"""The types of the keyword arguments to the generated `build_server` and `asgi_app`. All are optional."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .core.access_tokens import TokenVerifier
    from .core.task_engine import TaskEngine
    from .observability.audit import Audit


class _Options(TypedDict, total=False):
    state: str
    """The URL of the store. `memory://` (the default) stores state in this process; `redis://HOST:PORT` stores it in
    Redis, where processes share it and it outlives them.
    """

    audit: Audit | None
    """The destination of call records: a function that receives each `CallRecord` in a separate thread, or the path of
    a file that receives one line of JSON per call; `"-"` is standard error. By default, calls are not recorded.
    """

    toolset: str | None
    """The toolset to serve. By default, the server has all tools and, over HTTP, an additional endpoint for each
    toolset, such as `/mcp/triage`.
    """

    tasks: TaskEngine | None
    """The task engine, which distributes tasks among processes that share `state`; by default, a Redis stream."""

    threads: int
    """The number of threads for plain `def` handlers, by default 64. Each method uses at most half of them. A call that
    waits five seconds for a thread fails with an error.
    """


class ServerOptions(_Options, total=False):
    """Options for `build_server`."""

    local_scopes: Sequence[str]
    """The scopes of local callers, over stdio or in-process; by default none."""


class HttpOptions(TypedDict, total=False):
    """Options that apply only to HTTP servers."""

    path: str
    """The path of the endpoint, by default `/mcp`."""

    allowed_hosts: Sequence[str]
    """Allowed values of the `Host` header in addition to localhost, such as `api.example.com` or `api.example.com:*`.
    Requests with other values are rejected, which protects against DNS rebinding. `*` allows all hosts.
    """

    allowed_origins: Sequence[str]
    """Origins whose web pages may call the server from a browser, such as `https://app.example.com`; by default none.
    """

    token_verifier: TokenVerifier | None
    """Verifies bearer tokens. By default, tokens are verified according to the manifest's `auth`; without `auth`, any
    caller is allowed.
    """

    session_idle_timeout: float
    """The idle timeout of sessions in seconds, by default 1800. Only MCP 2025-11-25 and earlier have sessions."""

    max_sessions: int
    """The maximum number of open sessions, by default 2000. At the limit, requests for new sessions receive HTTP 503.
    """

    max_listeners: int
    """The maximum number of open `subscriptions/listen` streams, by default 1000. At the limit, requests for new
    streams receive HTTP 503.
    """

    max_listeners_each: int
    """The maximum number of open `subscriptions/listen` streams per caller, by default 100. At the limit, requests for
    new streams receive HTTP 429. Only the total limit applies to callers without a token.
    """

    stateless: bool
    """True to serve MCP 2025-11-25 and earlier without sessions, so that any process can handle any request. Clients
    then receive no requests and no change notifications, and cannot resume streams. By default, sessions are used.
    """

    health: bool
    """True to serve `/livez` and `/readyz`; by default false."""


class AppOptions(_Options, HttpOptions, total=False):
    """Options for the generated `asgi_app`."""
