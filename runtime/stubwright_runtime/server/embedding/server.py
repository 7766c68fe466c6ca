"""The generated server on the official SDK.

Takes a server's core; gives a `PackageServer`, which the SDK runs over any transport and in any revision. Results are
given in a middleware, above the SDK's models of them, which would reorder and drop parts of the manifest's definitions.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.inbound import MCP_NAME_HEADER, decode_header_value

from ...mcp.revisions import Revision
from ...observability.logs import redact_library_logs
from ...sdk.server import NotificationOptions, Server
from ...state.store import MEMORY
from ..app.building import build_core
from ..app.core import LISTS
from ..app.toolsets import list_named
from ..calls.old_names import find_mirrored_schema
from ..execution.threads import THREADS
from ..middlewares.expiry import end_stream_in_time
from ..protocol.parameters import HANDSHAKE_TASKS, STATELESS_TASKS
from ..protocol.requests import STATELESS, find_size_fault
from .adapter import Adapter
from .connections import Connections

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from ...package import Package
    from ...sdk.requests import CallNext, HandlerResult, ServerRequestContext
    from ...sdk.server import InitializationOptions
    from ..app.core import Core
    from ..core.lists import ResourceSwitches, Switches
    from ..observability.audit import Audit


class _SkillParameters(types.RequestParams):
    """The parameters of `skills/get`, which the SDK does not know (SEP-2640)."""

    uri: str


class _FolderParameters(types.PaginatedRequestParams):
    """Those of `resources/directory/read`."""

    uri: str


_ADMITTED: Final[Mapping[str, tuple[type[types.RequestParams], types.Result]]] = {
    "tools/list": (types.PaginatedRequestParams, types.ListToolsResult(tools=[])),
    "tools/call": (types.CallToolRequestParams, types.CallToolResult(content=[])),
    "resources/list": (types.PaginatedRequestParams, types.ListResourcesResult(resources=[])),
    "resources/templates/list": (
        types.PaginatedRequestParams,
        types.ListResourceTemplatesResult(resource_templates=[]),
    ),
    "resources/read": (types.ReadResourceRequestParams, types.ReadResourceResult(contents=[])),
    "resources/directory/read": (_FolderParameters, types.EmptyResult()),
    "skills/list": (types.PaginatedRequestParams, types.EmptyResult()),
    "skills/get": (_SkillParameters, types.EmptyResult()),
    "resources/subscribe": (types.SubscribeRequestParams, types.EmptyResult()),
    "prompts/list": (types.PaginatedRequestParams, types.ListPromptsResult(prompts=[])),
    "prompts/get": (types.GetPromptRequestParams, types.GetPromptResult(messages=[])),
    "completion/complete": (
        types.CompleteRequestParams,
        types.CompleteResult(completion=types.Completion(values=[])),
    ),
}
"""Parameters, and a placeholder: the SDK gives it when it has nothing against a request, and the middleware answers."""


def build_server(
    package: Package,
    handlers: object,
    *,
    state: str = MEMORY,
    local_scopes: Sequence[str] = (),
    audit: Audit | None = None,
    threads: int = THREADS,
    toolset: str | None = None,
) -> PackageServer:
    """Return a server that answers for a package with `handlers`.

    Args:
        package: The package.
        handlers: An object with the methods that the package needs; `None` if it needs none. If it is an async
            context manager, it is entered before the server's first connection, and left after its last.
        state: The URL of the store: `memory://`, which is this process, or `redis://…`, which many processes share.
        local_scopes: The scopes of callers that use neither a token nor HTTP.
        audit: The destination of call records: a function that takes a `CallRecord`, or a file.
        threads: The number of threads for plain `def` methods in all; each method takes at most half.
        toolset: The one of the manifest's toolsets that the server is for; by default it has all tools.

    Raises:
        OSError: The file for records cannot be opened.
        TypeError: Methods are missing or cannot be called; the message lists them all.
        ValueError: `threads` is not positive, or there is no such toolset.
        StoreConfigurationError: `state` is not a URL that state can be kept at.
        UnsupportedManifestError: The manifest declares a feature that is not supported.
    """
    return PackageServer(
        build_core(
            package,
            handlers,
            state=state,
            local_scopes=local_scopes,
            audit=audit,
            threads=threads,
            toolsets=list_named(toolset),
        )
    )


class PackageServer(Server[Any]):
    """The SDK's server for one package.

    Attributes:
        core: The core, which answers all messages.
        adapter: The adapter, which passes the SDK's messages on to the core.
        package: The package.
        failures: Exceptions that handlers raised, for a client in this process that was made with `raise_errors`.
        tools: The tools, to switch them on and off for all clients.
        prompts: The prompts, likewise.
        resources: The resources and resource templates, likewise, and to tell that one changed.
    """

    tools: Switches
    prompts: Switches
    resources: ResourceSwitches

    def __init__(self, core: Core) -> None:
        """Take the core that answers."""
        package = core.package
        info = package.manifest["server"]
        self.core = core
        connections = Connections(core.changes)
        super().__init__(
            info["name"],
            version=info["version"],
            title=info.get("title"),
            description=info.get("description"),
            instructions=info.get("instructions"),
            website_url=info.get("websiteUrl"),
            icons=[types.Icon.model_validate(icon) for icon in info["icons"]] if info.get("icons") else None,
            lifespan=core.lifespan,
            get_tool_input_schema=self._input_schema,
            on_subscriptions_listen=_admit_listening,
        )
        self.package = package
        self.extensions = core.extensions
        self.failures = core.failures
        self.tools, self.prompts, self.resources = core.tools, core.prompts, core.resources
        core.publishers.append(connections.publish)
        served = [method for method, name in LISTS.items() if name in core.lists]
        for method in (*served, *core.methods):
            parameters, placeholder = _ADMITTED[method]
            self.add_request_handler(method, parameters, _admit(placeholder))
        # The parameter `on_set_logging_level` warns on standard error; revisions up to 2025-11-25 want the method.
        self.add_request_handler("logging/setLevel", types.SetLevelRequestParams, connections.set_level)
        if "resources" in core.lists:
            self.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, connections.unsubscribe)
        self.add_notification_handler("notifications/initialized", types.NotificationParams, connections.tell)
        # The core starts the spans, whichever way a message comes.
        self.middleware[:] = [each for each in self.middleware if type(each).__name__ != "OpenTelemetryMiddleware"]
        self.middleware.append(end_stream_in_time)
        self.adapter = Adapter(core, connections)
        self.middleware.append(self.adapter)
        self.middleware.append(_limit_handshake)
        self.middleware.append(_refuse_second_handshake)
        self.middleware.append(connections.greet)
        if core.tasks is not None:
            for method in HANDSHAKE_TASKS:
                self.add_request_handler(method, types.RequestParams, _admit(types.EmptyResult()))
            self.middleware.append(_admit_about_task)
        redact_library_logs()

    async def complete(self, elicitation: str) -> bool:
        """Tell a client that all is done at the URL that it was asked to open (MCP 2025-11-25, client/elicitation).

        Args:
            elicitation: The id that the question was asked with.

        Returns:
            True if a client was told: it is still connected, and was not told of this question before.
        """
        return await self.core.input_requests.urls.complete(elicitation)

    def _input_schema(self, called: str) -> Mapping[str, Any] | None:
        """Return the schema that the headers of a call are compared with: none if the tool is not there for the caller.

        Only HTTP has such headers.
        """
        name = self.package.resolve_alias(called)
        if not self.core.shows_tool(name):
            return None
        return find_mirrored_schema(
            self.package.tools[name].definition["inputSchema"], self.package.aliases.get(called)
        )

    def get_capabilities(self, *arguments: Any, **options: Any) -> types.ServerCapabilities:
        """Return the SDK's capabilities, with `logging` from 2026-07-28 on only if the manifest declares it."""
        capabilities = super().get_capabilities(*arguments, **options)
        if options.get("protocol_version") in STATELESS and not self.core.logs:
            return capabilities.model_copy(update={"logging": None})
        return capabilities

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return the answer of `initialize` for every transport; by default it announces changes of the lists."""
        announces = self.core.has_sessions
        options = notification_options or NotificationOptions(
            tools_changed=announces, resources_changed=announces, prompts_changed=announces
        )
        initialization = super().create_initialization_options(options, experimental_capabilities, extensions)
        if initialization.capabilities.resources is not None and not announces:
            initialization.capabilities.resources.subscribe = False
        return initialization


async def _limit_handshake(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Refuse a handshake of unusual size, since its parameters are kept as long as its connection."""
    if ctx.method == "initialize" and (fault := find_size_fault(ctx.params)) is not None:
        raise MCPError(fault.code, fault.message)
    return await call_next(ctx)


async def _refuse_second_handshake(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Refuse a handshake after the first: it would change the revision under way (MCP 2025-11-25, basic/lifecycle)."""
    has_handshake = Revision.from_date(ctx.protocol_version).has("handshake")
    if ctx.method == "initialize" and has_handshake and ctx.session.client_params is not None:
        text = "The connection is initialized already; send initialize once, as its first request"
        raise MCPError(types.INVALID_REQUEST, text)
    return await call_next(ctx)


async def _admit_listening(_ctx: object, _params: object) -> types.SubscriptionsListenResult:
    raise RuntimeError("subscriptions/listen is answered by the core")


def _admit(placeholder: types.Result) -> Callable[[object, object], Awaitable[types.Result]]:
    async def admit(_ctx: object, _params: object) -> types.Result:
        return placeholder

    return admit


async def _admit_about_task(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Admit requests about tasks from 2026-07-28 on, which the SDK does not know, and refuse those of another name."""
    if not ctx.method.startswith("tasks/") or not Revision.from_date(ctx.protocol_version).has("task_extension"):
        return await call_next(ctx)
    if ctx.method not in STATELESS_TASKS:
        return {}  # the core refuses it
    types.RequestParams.model_validate(ctx.params or {}, by_name=False)
    named: object = (ctx.params or {}).get("taskId")
    header = named if ctx.request is None else decode_header_value(ctx.request.headers.get(MCP_NAME_HEADER))
    if isinstance(named, str) and header != named:
        text = f"{MCP_NAME_HEADER} header does not match the request body's 'taskId' parameter"
        raise MCPError(types.HEADER_MISMATCH, text)
    return {}
