"""What generated `build_server` and `asgi_app` take beside handlers, for type checkers: all of it may be left out."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..sdk.auth import TokenVerifier
    from .observability.audit import Audit


class _Options(TypedDict, total=False):
    state: str
    """Where state lives: `memory://`, the default, is this process; `redis://HOST:PORT` is shared by many, and outlives
    them."""

    audit: Audit | None
    """Where calls are recorded: a function that takes a `CallRecord`, and is called in a thread of its own, or a file
    that gets a line of JSON for each; `"-"` is standard error. By default nowhere."""

    toolset: str | None
    """The one of the manifest's toolsets that the server is for; by default it has all tools, and over HTTP an endpoint
    of its own for each toolset, such as `/mcp/triage`."""

    threads: int
    """How many threads plain `def` methods may take in all, by default 64. Each method takes at most half of them; a
    call that gets none within five seconds is refused."""


class ServerOptions(_Options, total=False):
    """Options of `build_server`."""

    local_scopes: Sequence[str]
    """The scopes of callers that come neither with a token nor over HTTP; by default none."""


class HttpOptions(TypedDict, total=False):
    """How a server is served over HTTP."""

    path: str
    """Where the endpoint is, by default `/mcp`."""

    allowed_hosts: Sequence[str]
    """Values of the `Host` header to answer beside this machine's own, such as `api.example.com` or
    `api.example.com:*`; any other is refused, which protects against DNS rebinding. `*` allows all."""

    allowed_origins: Sequence[str]
    """Origins of other web pages that may call from a browser, such as `https://app.example.com`; by default none."""

    token_verifier: TokenVerifier | None
    """Checks bearer tokens; by default as the manifest's `auth` says. Without both, anybody may call."""

    session_idle_timeout: float
    """Seconds without a request after which the session of a client of 2025-11-25 or older ends, by default 1800. Newer
    clients have no session."""

    max_sessions: int
    """How many sessions may be open, by default 2000. While they are, a new one is answered HTTP 503."""

    max_listeners: int
    """How many streams of `subscriptions/listen` may be open, by default 1000. While they are, a new one is answered
    HTTP 503."""

    max_listeners_each: int
    """How many of these one caller may have open, by default 100. While they are, a new one is answered HTTP 429.
    Callers without a token share all of them."""

    stateless: bool
    """Whether clients of 2025-11-25 or older have no sessions either, so that each of their requests may come to any of
    several processes. They are asked nothing, hear of no changes, and cannot resume. By default they have."""

    health: bool
    """Whether to answer `/livez` and `/readyz`; by default not."""


class AppOptions(_Options, HttpOptions, total=False):
    """Options of `asgi_app`."""
