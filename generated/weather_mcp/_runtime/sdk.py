# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""The generated server on the official SDK: the one module that knows the SDK's server side.

Takes the tools and the handlers; gives a low-level `Server` and an ASGI application. The SDK speaks the protocol, over
any transport and in any revision; we answer `tools/list` and `tools/call` in a middleware, above the SDK's models of
results, which would reorder and drop parts of the manifest's schemas. It writes no JSON-RPC.
"""

from __future__ import annotations

import logging
import weakref
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.server.auth.middleware.auth_context import AuthContextMiddleware
from mcp.server.auth.middleware.bearer_auth import BearerAuthBackend
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.subscriptions import InMemorySubscriptionBus, ListenHandler
from mcp.server.transport_security import TransportSecuritySettings
from mcp.shared.exceptions import MCPError
from mcp_types.methods import validate_client_request
from starlette.middleware.authentication import AuthenticationMiddleware

from . import contract
from .context import LOG_LEVELS, Context, LogLevel
from .engine import Engine
from .hygiene import clean
from .lifespan import Lifespan
from .revisions import FIRST_STATELESS, result_for, tool_for

if TYPE_CHECKING:
    from collections.abc import Sequence

    from mcp.server.auth.provider import TokenVerifier
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.server.models import InitializationOptions
    from starlette.applications import Starlette

    from .tools import Tools

_LOCAL: Final = ("127.0.0.1", "localhost", "[::1]")


def build_server(tools: Tools, handlers: object, *, state: str = "memory://") -> Server[Any]:
    """A server that answers for `tools` with `handlers`.

    Args:
        tools: The package's tools.
        handlers: An object with one method for each tool. If it is an async context manager, it is entered before the
            server's first connection, and left after its last.
        state: Where state lives: `memory://`, which is this process.

    Raises:
        TypeError: Methods are missing or cannot be called with `(args, ctx)`; the message lists them all.
        ValueError: `state` is of a kind that is not served.
    """
    if state != "memory://":
        raise ValueError(f"state is {state!r}; this version keeps state in the process only: 'memory://'")
    contract.check(tools, handlers)
    return _ToolServer(tools, handlers)


def asgi_app(
    server: Server[Any],
    *,
    path: str = "/mcp",
    allowed_hosts: Sequence[str] = (),
    token_verifier: TokenVerifier | None = None,
) -> Starlette:
    """The server as an ASGI application that speaks Streamable HTTP (MCP 2025-11-25, basic/transports).

    Args:
        server: What `build_server` gave.
        path: Where the endpoint is.
        allowed_hosts: Values of the `Host` header to answer beside this machine's own, with or without a port, such as
            `api.example.com` or `api.example.com:8443`. Pages of these hosts may call, too (`Origin`). `*` allows all.
        token_verifier: Checks bearer tokens; without one, anybody may call.
    """
    app = server.streamable_http_app(
        streamable_http_path=path,
        transport_security=_security([*_LOCAL, *allowed_hosts]),
        token_verifier=token_verifier,
    )
    if token_verifier is not None:  # the SDK only adds these with the settings of an authorization server
        app.add_middleware(AuthContextMiddleware)
        app.add_middleware(AuthenticationMiddleware, backend=BearerAuthBackend(token_verifier))
    return app


def _security(hosts: Sequence[str]) -> TransportSecuritySettings:
    """Protection against DNS rebinding: hosts and origins to answer, each at the port it names or at any."""
    if "*" in hosts:
        return TransportSecuritySettings(enable_dns_rebinding_protection=False)
    named = [form for host in hosts for form in ([host] if _has_port(host) else [host, f"{host}:*"])]
    origins = [f"{scheme}://{host}" for host in named for scheme in ("http", "https")]
    return TransportSecuritySettings(allowed_hosts=named, allowed_origins=origins)


def _has_port(host: str) -> bool:
    return ":" in host.rpartition("]")[2]


class _ToolServer(Server[Any]):
    """The SDK's server for one package's tools."""

    def __init__(self, tools: Tools, handlers: object) -> None:
        info = tools.manifest["server"]
        super().__init__(
            info["name"],
            version=info["version"],
            title=info.get("title"),
            description=info.get("description"),
            instructions=info.get("instructions"),
            website_url=info.get("websiteUrl"),
            icons=[types.Icon.model_validate(icon) for icon in info["icons"]] if info.get("icons") else None,
            lifespan=Lifespan(handlers),
            get_tool_input_schema=lambda name: tools[name].definition["inputSchema"] if name in tools else None,
            on_list_tools=_admitted_list,
            on_call_tool=_admitted_call,
            on_subscriptions_listen=ListenHandler(InMemorySubscriptionBus()),
        )
        levels = _LogLevels()
        # The parameter `on_set_logging_level` warns on standard error; revisions up to 2025-11-25 want the method.
        self.add_request_handler("logging/setLevel", types.SetLevelRequestParams, levels.set_level)
        self.middleware.append(_Answers(self, tools, Engine(handlers, logging.getLogger(tools.package)), levels))

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """What `initialize` answers; every transport asks here, and all of them announce changes of the list."""
        options = notification_options or NotificationOptions(tools_changed=True)
        return super().create_initialization_options(options, experimental_capabilities, extensions)


async def _admitted_list(_ctx: object, _params: object) -> types.ListToolsResult:
    """A placeholder: the SDK comes here when it has nothing against a request, and the middleware answers it."""
    return types.ListToolsResult(tools=[])


async def _admitted_call(_ctx: object, _params: object) -> types.CallToolResult:
    """A placeholder, as `_admitted_list`."""
    return types.CallToolResult(content=[])


class _Answers:
    """The middleware that answers `tools/list` and `tools/call`."""

    def __init__(self, server: Server[Any], tools: Tools, engine: Engine, levels: _LogLevels) -> None:
        self._server = server
        self._tools = tools
        self._engine = engine
        self._levels = levels
        self._lists: dict[str, dict[str, Any]] = {}
        self._stamp: dict[str, Any] | None = None

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Answer a request of ours; pass on any other message."""
        request_id = ctx.request_id
        if request_id is None or ctx.method not in ("tools/list", "tools/call"):
            return await call_next(ctx)
        if not _is_admissible(ctx):
            await call_next(ctx)  # the SDK refuses what it must, in its own words
        params = ctx.params or {}
        if ctx.method == "tools/list":
            return self._list(ctx, params)
        return await self._call(ctx, request_id, params)

    def _list(self, ctx: ServerRequestContext[Any, Any], params: Any) -> dict[str, Any]:
        """Every tool, in the manifest's order, on one page; so there is no cursor that we could have given."""
        if params.get("cursor") is not None:
            raise MCPError(types.INVALID_PARAMS, "Invalid cursor")
        revision = ctx.protocol_version
        if (answer := self._lists.get(revision)) is None:
            answer = {"tools": [tool_for(tool.definition, revision) for tool in self._tools.values()]}
            if revision >= FIRST_STATELESS:
                answer |= {"ttlMs": 0, "cacheScope": "private"}
            answer = self._lists[revision] = self._stamped(answer, revision)
        return answer

    async def _call(self, ctx: ServerRequestContext[Any, Any], request_id: str | int, params: Any) -> dict[str, Any]:
        tool = self._tools.get(params["name"])
        if tool is None:
            raise MCPError(types.INVALID_PARAMS, f"Unknown tool: {clean(params['name'])}")
        revision = ctx.protocol_version
        context = Context(request_id, revision, tool.name, _Channel(ctx, self._levels))
        result = await self._engine.call(tool, params.get("arguments"), context)
        return self._stamped(result_for(result, tool.definition, revision), revision)

    def _stamped(self, result: dict[str, Any], revision: str) -> dict[str, Any]:
        """From 2026-07-28, what every result says: that it is complete, and who gave it."""
        if revision < FIRST_STATELESS:
            return result
        if self._stamp is None:
            self._stamp = self._server.server_info_stamp
        meta = {**result.get("_meta", {}), types.SERVER_INFO_META_KEY: self._stamp}
        return {"resultType": "complete", **result, "_meta": meta}


def _is_admissible(ctx: ServerRequestContext[Any, Any]) -> bool:
    """Whether the connection has shaken hands, where its revision wants that, and the parameters are well-formed."""
    if ctx.protocol_version < FIRST_STATELESS and ctx.session.client_params is None:
        return False
    try:
        validate_client_request(ctx.method, ctx.protocol_version, ctx.params)
    except (KeyError, ValueError):
        return False
    return True


class _LogLevels:
    """What each connection of the handshake era wants to hear, as `logging/setLevel` said."""

    def __init__(self) -> None:
        self._levels: dict[int, LogLevel] = {}

    async def set_level(
        self, ctx: ServerRequestContext[Any, Any], params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        """Answer `logging/setLevel` (MCP 2025-11-25, server/utilities/logging)."""
        connection = ctx.session.client_params  # lives as long as its connection, which has no other public name
        if connection is not None:
            if id(connection) not in self._levels:
                weakref.finalize(connection, self._levels.pop, id(connection), None).atexit = False
            self._levels[id(connection)] = params.level
        return types.EmptyResult()

    def wanted(self, ctx: ServerRequestContext[Any, Any]) -> LogLevel | None:
        """The least level that the caller wants; `None` where it wants no messages."""
        if ctx.protocol_version >= FIRST_STATELESS:
            level = (ctx.meta or {}).get(types.LOG_LEVEL_META_KEY)
            return level if level in LOG_LEVELS else None
        return self._levels.get(id(ctx.session.client_params), "info")


@dataclass(frozen=True, slots=True)
class _Channel:
    """The way to the caller of one request, on the stream that carries its response."""

    _ctx: ServerRequestContext[Any, Any]
    _levels: _LogLevels

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        await self._ctx.session.report_progress(done, total, message)

    async def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        wanted = self._levels.wanted(self._ctx)
        if wanted is None or LOG_LEVELS.index(level) < LOG_LEVELS.index(wanted):
            return
        params = types.LoggingMessageNotificationParams(level=level, data=data, logger=logger)
        await self._ctx.session.send_notification(
            types.LoggingMessageNotification(params=params), related_request_id=self._ctx.request_id
        )
