# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""The server as an ASGI application: Streamable HTTP, who may call it, and what is kept for those who come back.

Takes the SDK's server; gives a Starlette application (MCP 2025-11-25, basic/transports).
"""

from __future__ import annotations

from collections import OrderedDict, deque
from typing import TYPE_CHECKING, Any, Final

from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.transport_security import TransportSecuritySettings
from starlette.middleware.authentication import AuthenticationMiddleware

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp.server.auth.provider import TokenVerifier
    from mcp.server.lowlevel import Server
    from mcp.server.streamable_http import EventCallback
    from mcp_types import JSONRPCMessage
    from starlette.applications import Starlette

_LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")

_RETRY: Final = 1000
"""Milliseconds after which a client that lost its stream should come back."""

_EVENTS: Final = 256
"""Messages that are kept of one stream."""

_STREAMS: Final = 1024
"""Streams that messages are kept of; beyond, the one that was quiet longest is forgotten."""


def asgi_app(
    server: Server[Any],
    *,
    path: str = "/mcp",
    allowed_hosts: Sequence[str] = (),
    token_verifier: TokenVerifier | None = None,
) -> Starlette:
    """The server as an ASGI application.

    Args:
        server: What `build_server` gave.
        path: Where the endpoint is.
        allowed_hosts: Values of the `Host` header to answer beside this machine's own, with or without a port, such as
            `api.example.com` or `api.example.com:8443`. Pages of these hosts may call, too (`Origin`). `*` allows all.
        token_verifier: Checks bearer tokens; without one, anybody may call.
    """
    app = server.streamable_http_app(
        streamable_http_path=path,
        event_store=Replay(),
        retry_interval=_RETRY,
        transport_security=_security([*_LOCAL, *allowed_hosts]),
        token_verifier=token_verifier,
    )
    if token_verifier is not None:  # the SDK only adds these with the settings of an authorization server
        app.add_middleware(AuthContextMiddleware)
        app.add_middleware(AuthenticationMiddleware, backend=BearerAuthBackend(token_verifier))
    return app


class Replay(EventStore):
    """The last messages of the last streams, for clients that lost one (MCP 2025-11-25, basic/transports, "Resumability
    and Redelivery"). What is no longer there is lost, as it would be without this.
    """

    def __init__(self, streams: int = _STREAMS, events: int = _EVENTS) -> None:
        """Say how many streams are kept, and how many messages of each."""
        self._streams: OrderedDict[str, deque[tuple[int, JSONRPCMessage | None]]] = OrderedDict()
        self._most = streams
        self._events = events
        self._number = 0

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """Keep a message; gives its id, which names its stream."""
        self._number += 1
        kept = self._streams.setdefault(stream_id, deque(maxlen=self._events))
        kept.append((self._number, message))
        self._streams.move_to_end(stream_id)
        if len(self._streams) > self._most:
            self._streams.popitem(last=False)
        return f"{self._number}/{stream_id}"

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Send what came after an event on its stream; gives the stream, `None` where nothing is known of it."""
        number, _, stream_id = last_event_id.partition("/")
        kept = self._streams.get(stream_id)
        if kept is None or not number.isdecimal():
            return None
        for position, message in list(kept):
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
