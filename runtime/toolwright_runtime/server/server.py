"""The generated server on the official SDK: the one module that knows the SDK's low-level server.

Takes the parts of a server and the handlers; gives a `PackageServer`. The SDK speaks the protocol, over any transport
and in any revision; results are given in a middleware, above the SDK's models of them, which would reorder and drop
parts of what the manifest says. It writes no JSON-RPC.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, nullcontext
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeVar, cast

import mcp_types as types
from mcp.shared.exceptions import MCPError
from mcp.shared.message import ServerMessageMetadata
from mcp_types.methods import validate_client_request
from pydantic import BaseModel

from ..mcp.downgrades import tool_for
from ..mcp.revisions import Revision
from ..mcp.vocabulary import SECTIONS
from ..observability.logs import logger, name_after, redact_library_logs
from ..sdk.http import MCP_SESSION_ID_HEADER
from ..sdk.server import NotificationOptions, Server
from ..state.store import MEMORY, Store
from ..state.stores import store_at
from .core import required_features
from .core.call_state import CURRENT
from .core.composition import parts
from .core.context import LOG_LEVELS, LogLevel
from .core.expiry import end_stream_in_time
from .core.lists import Lists, ResourceSwitches, StaleCursorError, Switches
from .core.lost_store import LostStore
from .core.parts import Answer, Host, Part, ProtocolError, Request
from .core.principal import Principal, current, local
from .core.request_state import EncryptedRequestState
from .execution.slots import Slot
from .execution.threads import THREADS, Threads
from .features.changes import Changes
from .features.input_requests import InputRequestRunner
from .features.subscriptions import Subscriptions
from .handlers import check
from .handlers.lifespan import Lifespan
from .observability.instrumentation import Instrumentation, recorder
from .transports.in_flight import InFlight

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ..package import Package
    from ..policy.scopes import Scopes
    from ..sdk.requests import CallNext, HandlerResult, ServerRequestContext
    from ..sdk.server import InitializationOptions
    from ..tasks.service import Tasks
    from .features.url_elicitation import UrlQuestions
    from .observability.audit import Audit, Recorder
    from .transports.http.streams import Streams

_Result = TypeVar("_Result", bound=BaseModel)

_PATIENCE: Final = 3600.0
"""Seconds that a person may take for an answer, from 2026-07-28 on: so long the state of a request holds."""

_GREETING: Final = 64 * 1024
"""Bytes of what a client may say about itself in the handshake, as JSON."""

_GREETING_PARTS: Final = 1000
"""Objects and arrays in that."""

_PAGES: Final = 64
"""First pages that are kept, at most: of each list, for each revision, and for callers with the same scopes."""

_LISTS: Final = {section.method: section.name for section in SECTIONS}

_ADMITTED: Final[Mapping[str, tuple[type[BaseModel], types.Result]]] = {
    "tools/list": (types.PaginatedRequestParams, types.ListToolsResult(tools=[])),
    "tools/call": (types.CallToolRequestParams, types.CallToolResult(content=[])),
    "resources/list": (types.PaginatedRequestParams, types.ListResourcesResult(resources=[])),
    "resources/templates/list": (
        types.PaginatedRequestParams,
        types.ListResourceTemplatesResult(resource_templates=[]),
    ),
    "resources/read": (types.ReadResourceRequestParams, types.ReadResourceResult(contents=[])),
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
) -> PackageServer:
    """A server that answers for a package with `handlers`.

    Args:
        package: The package.
        handlers: An object with the methods that the package needs; `None` where it needs none. If it is an async
            context manager, it is entered before the server's first connection, and left after its last.
        state: Where state lives: `memory://`, which is this process, or `redis://…`, which many processes share.
        local_scopes: The scopes of callers that come neither with a token nor over HTTP.
        audit: Where calls are recorded: a function that takes a `CallRecord`, or a file.
        threads: How many threads plain `def` methods may take in all; each of them takes at most half.

    Raises:
        OSError: The file for records cannot be opened.
        TypeError: Methods are missing or cannot be called; the message lists them all.
        ValueError: `threads` is not positive.
        Unfit: `state` is no URL that state can be kept at.
        Unserved: The manifest declares what is not served.
    """
    required_features.check(package)
    pool = Threads(threads)
    store = store_at(state, package)
    server_parts = parts(package)
    present = check.NoHandlers() if handlers is None else handlers
    check.check(
        package.manifest["server"]["name"], [method for part in server_parts for method in part.needed()], present
    )
    call_recorder = None if audit is None else recorder(package, audit)
    complete = _bind(package, present) if package.has_calls else present
    return PackageServer(package, complete, server_parts, local(local_scopes), store, call_recorder, pool)


def _bind(package: Package, handlers: object) -> object:
    """The handlers, with those of tools that are HTTP calls."""
    from ..http.calls import bind

    return bind(package, handlers)


def _tasks(package: Package, store: Store, recorder: Recorder | None) -> Tasks | None:
    if not package.has_tasks:
        return None
    from ..tasks.service import Tasks

    return Tasks(package, store, recorder)


@asynccontextmanager
async def _kept(package: Package, store: Store) -> AsyncGenerator[None, None]:
    """The time in which a store is at work. What begins in it, handlers too, is at work for the package."""
    name_after(package.name)
    async with store.run():
        yield


def _scopes(package: Package) -> Scopes | None:
    if not package.has_scopes:
        return None
    from ..policy.scopes import Scopes

    return Scopes(package)


class PackageServer(Server[Any]):
    """The SDK's server for one package.

    Attributes:
        tools: The tools, to switch them on and off for all clients.
        prompts: The prompts, likewise.
        resources: The resources and resource templates, likewise, and to tell that one changed.
        package: The package.
        scopes: Who may use what; `None` where anybody may.
        recorder: Where calls are recorded; `None` where they are not.
        observer: Sees all messages.
        in_flight: Knows the requests that are being answered.
        store: Where what outlives a request is kept.
        tasks: What makes tasks of calls; `None` where no tool has `taskSupport`.
        threads: Where plain `def` methods of the handlers run.
        has_sessions: Whether there are connections, up to 2025-11-25, that outlive a request.
    """

    tools: Switches
    prompts: Switches
    resources: ResourceSwitches

    def __init__(
        self,
        package: Package,
        handlers: object,
        parts: Sequence[Part],
        user: Principal,
        store: Store,
        recorder: Recorder | None = None,
        threads: Threads | None = None,
    ) -> None:
        """Put the parts together; `build_server` checks the handlers first."""
        info = package.manifest["server"]
        schemas = package.entries("tools")
        self._user = user
        self._stamp: dict[str, Any] | None = None
        self.store = store
        self.has_sessions = True
        self._subscriptions = subscriptions = Subscriptions()
        self.tasks = _tasks(package, store, recorder)
        super().__init__(
            info["name"],
            version=info["version"],
            title=info.get("title"),
            description=info.get("description"),
            instructions=info.get("instructions"),
            website_url=info.get("websiteUrl"),
            icons=[types.Icon.model_validate(icon) for icon in info["icons"]] if info.get("icons") else None,
            lifespan=Lifespan(
                handlers,
                partial(_kept, package, store),
                None if recorder is None else recorder.flush,
                nullcontext if self.tasks is None else self.tasks.running,
            ),
            get_tool_input_schema=lambda name: schemas[name][0]["inputSchema"] if self._has_tool(name) else None,
            on_subscriptions_listen=subscriptions.listen,
        )
        listings = {name: entries for part in parts for name, entries in part.listings().items()}
        lists = Lists(listings, package.manifest, lambda all_: Changes(store, all_, subscriptions.publish))
        self.lists = lists.by_name
        self.tools, self.prompts, self.resources = lists.tools, lists.prompts, lists.resources
        self.package = package
        self.scopes = _scopes(package)
        self.threads = threads or Threads()
        log = logger(package.name)
        host = Host(package, handlers, lists, log, self.scopes, store, self.tasks, self.threads)
        answers: dict[str, Answer] = {}
        for part in parts:
            answers |= part.answers(host)
        served = [method for method, name in _LISTS.items() if name in listings]
        for method in (*served, *answers):
            parameters, placeholder = _ADMITTED[method]
            self.add_request_handler(method, parameters, _admit(placeholder))
        # The parameter `on_set_logging_level` warns on standard error; revisions up to 2025-11-25 want the method.
        self.add_request_handler("logging/setLevel", types.SetLevelRequestParams, subscriptions.set_level)
        if "resources" in listings:
            self.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, subscriptions.unsubscribe)
        self.add_notification_handler("notifications/initialized", types.NotificationParams, subscriptions.tell)
        self.recorder = recorder
        self.instrumentation = Instrumentation(package, recorder, user)
        self.in_flight = InFlight()
        self.middleware.append(self.instrumentation)
        self.middleware.append(end_stream_in_time)
        self.middleware.append(self.in_flight)
        self.middleware.append(LostStore(self.stamp))
        self.middleware.append(EncryptedRequestState(store, info["name"], _PATIENCE))
        self.middleware.append(_limit_handshake)
        self.middleware.append(subscriptions.greet)
        self._input_requests = InputRequestRunner(_PATIENCE, store)
        if self.tasks is not None:
            from ..tasks.methods import Methods

            self.middleware.append(Methods(self, self.tasks, partial(_channel, subscriptions)))
        self.middleware.append(_Answers(self, lists, answers, subscriptions, self._input_requests))
        if self.scopes is not None:
            from ..policy.scopes import Listening

            self.middleware.append(Listening(self.scopes, self.principal))
        redact_library_logs()

    async def complete(self, elicitation: str) -> bool:
        """Tell a client that all is done at the URL that it was asked to open (MCP 2025-11-25, client/elicitation).

        Args:
            elicitation: The id that the question was asked with.

        Returns:
            Whether a client was told: one that is still connected, of this question, for the first time.
        """
        return await self._input_requests.urls.complete(elicitation)

    def limit_listeners(self, streams: Streams) -> None:
        """Bound how many clients from 2026-07-28 on may listen for changes at once."""
        self._subscriptions.streams = streams

    def stop(self) -> None:
        """Begin no more tasks, since the server is going to end; those under way go on."""
        if self.tasks is not None:
            self.tasks.engine.stop()

    def principal(self, *, over_http: bool) -> Principal:
        """Who sent the request that is being answered, with all scopes that its own hold."""
        caller = current(over_http=over_http, user=self._user)
        return caller if self.scopes is None else self.scopes.widened(caller)

    def stamp(self, result: dict[str, Any], revision: str) -> dict[str, Any]:
        """From 2026-07-28, what every result says: whether it is complete, and who gave it."""
        if not Revision.of(revision).has("stateless"):
            return result
        if self._stamp is None:
            self._stamp = self.server_info_stamp
        meta = {**result.get("_meta", {}), types.SERVER_INFO_META_KEY: self._stamp}
        return {"resultType": "complete", **result, "_meta": meta}

    def _has_tool(self, name: str) -> bool:
        """Whether the headers of a call are compared with the tool's schema: not where it is not there for the caller.

        Only HTTP has such headers.
        """
        if name not in self.lists.get("tools", ()):
            return False
        return self.scopes is None or self.scopes.allows(self.principal(over_http=True), "tools", name)

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """What `initialize` answers; every transport asks here, and all of them announce changes of the lists."""
        announces = self.has_sessions
        options = notification_options or NotificationOptions(
            tools_changed=announces, resources_changed=announces, prompts_changed=announces
        )
        initialization = super().create_initialization_options(options, experimental_capabilities, extensions)
        if initialization.capabilities.resources is not None and not announces:
            initialization.capabilities.resources.subscribe = False
        return initialization


async def _limit_handshake(ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
    """Refuse a handshake of unusual size: what the client says there is kept as long as its connection."""
    if ctx.method == "initialize":
        text = json.dumps(ctx.params)
        if len(text) > _GREETING or text.count("{") + text.count("[") > _GREETING_PARTS:
            most = f"{_GREETING:,} bytes of JSON with {_GREETING_PARTS:,} objects and arrays"
            raise MCPError(types.INVALID_PARAMS, f"The parameters of initialize are too large. Send at most {most}.")
    return await call_next(ctx)


def _admit(placeholder: types.Result) -> Callable[[object, object], Awaitable[types.Result]]:
    async def admitted(_ctx: object, _params: object) -> types.Result:
        return placeholder

    return admitted


class _Page(NamedTuple):
    """What the first page of a list depends on."""

    name: str
    version: int
    revision: str
    kind: str
    allowed: frozenset[str] | None


class _Answers:
    """The middleware that answers what the parts serve."""

    def __init__(
        self,
        server: PackageServer,
        lists: Lists,
        answers: Mapping[str, Answer],
        subscriptions: Subscriptions,
        input_requests: InputRequestRunner,
    ) -> None:
        self._server = server
        self._lists = lists
        self._answers = answers
        self._subscriptions = subscriptions
        self._input_requests = input_requests
        self._pages: dict[_Page, dict[str, Any]] = {}

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Answer a request of ours; pass on any other message."""
        request_id, method = ctx.request_id, ctx.method
        if request_id is None or (method not in self._answers and _LISTS.get(method) not in self._lists.by_name):
            return await call_next(ctx)
        if not _is_admissible(ctx, self._server.has_sessions):
            await call_next(ctx)  # the SDK refuses what it must, in its own words
        principal = self._server.principal(over_http=ctx.request is not None)
        if (call_state := CURRENT.get()) is not None:
            call_state.principal = principal
        try:
            if method in _LISTS:
                return self._list(method, (ctx.params or {}).get("cursor"), ctx.protocol_version, principal)
            return await self._answer(ctx, request_id, principal)
        except ProtocolError as error:
            raise MCPError(error.code, error.message, error.data) from None
        except StaleCursorError:
            raise MCPError(types.INVALID_PARAMS, "Invalid cursor") from None

    def _list(self, method: str, cursor: str | None, revision: str, principal: Principal) -> dict[str, Any]:
        """A page of a list. The first is kept until the list changes, since every client begins with it."""
        name = _LISTS[method]
        scopes = self._server.scopes
        allowed = None if scopes is None else scopes.relevant(principal, name)
        key = _Page(name, self._lists.by_name[name].version, revision, principal.kind, allowed)
        if cursor is None and key in self._pages:
            return self._pages[key]
        shows = None if scopes is None else partial(scopes.shows, principal, name)
        answer = self._lists.answer(name, cursor, revision, shows)
        if name == "tools":
            answer["tools"] = [tool_for(definition, revision) for definition in answer["tools"]]
        answer = self._server.stamp(answer, revision)
        if cursor is None:
            pages = [(page, listed) for page, listed in self._pages.items() if page[0] != name or page[1] == key[1]]
            self._pages = dict(pages[-_PAGES:])
            self._pages[key] = answer
        return answer

    async def _answer(
        self, ctx: ServerRequestContext[Any, Any], request_id: str | int, principal: Principal
    ) -> dict[str, Any]:
        revision = ctx.protocol_version
        channel = _Channel(ctx, self._subscriptions, self._input_requests.urls)
        slot = Slot(self._server.threads)
        request = Request(ctx.method, request_id, ctx.params or {}, revision, channel, principal, slot)
        answer = self._answers[ctx.method]
        result = await self._input_requests.answer(answer, request)
        return self._server.stamp(result, revision)


def _is_admissible(ctx: ServerRequestContext[Any, Any], has_sessions: bool) -> bool:
    """Whether the connection has shaken hands, where its revision wants that, and the parameters are well-formed."""
    if Revision.of(ctx.protocol_version).has("handshake") and ctx.session.client_params is None and has_sessions:
        return False
    try:
        validate_client_request(ctx.method, ctx.protocol_version, ctx.params)
    except (KeyError, ValueError):
        return False
    return True


def _channel(subscriptions: Subscriptions, ctx: ServerRequestContext[Any, Any]) -> _Channel:
    return _Channel(ctx, subscriptions)


@dataclass(frozen=True, slots=True)
class _Channel:
    """The way to the caller of one request, on the stream that carries its response."""

    _ctx: ServerRequestContext[Any, Any]
    _subscriptions: Subscriptions
    _urls: UrlQuestions | None = None

    @property
    def capabilities(self) -> types.ClientCapabilities | None:
        return self._ctx.session.client_capabilities

    @property
    def client(self) -> tuple[str, str] | None:
        params = self._ctx.session.client_params
        return None if params is None else (params.client_info.name, params.client_info.version)

    @property
    def session(self) -> str | None:
        return None if self._ctx.request is None else self._ctx.request.headers.get(MCP_SESSION_ID_HEADER)

    @property
    def token(self) -> str | int | None:
        return (self._ctx.meta or {}).get("progress_token")

    async def tell(self, notification: types.Notification[Any, Any]) -> None:
        await self._ctx.session.send_notification(cast("types.ServerNotification", notification))

    async def request(self, request: types.ServerRequest, result: type[_Result]) -> _Result:
        related = ServerMessageMetadata(related_request_id=self._ctx.request_id)
        return await self._ctx.session.send_request(request, result, metadata=related)

    def asked_to_visit(self, elicitation: str) -> None:
        if self._urls is not None:
            self._urls.add(elicitation, self._ctx.session)

    async def visited(self, elicitation: str) -> bool:
        return self._urls is not None and await self._urls.complete(elicitation, self._ctx.request_id)

    async def subscribe(self, uri: str) -> None:
        self._subscriptions.subscribe(self._ctx, uri)

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        await self._ctx.session.report_progress(done, total, message)

    def wants(self, level: LogLevel) -> bool:
        wanted = self._subscriptions.level(self._ctx)
        return wanted is not None and LOG_LEVELS.index(level) >= LOG_LEVELS.index(wanted)

    async def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        if not self.wants(level):
            return
        params = types.LoggingMessageNotificationParams(level=level, data=data, logger=logger)
        await self._ctx.session.send_notification(
            types.LoggingMessageNotification(params=params), related_request_id=self._ctx.request_id
        )

    async def release(self) -> None:
        if self._ctx.close_sse_stream is not None:
            await self._ctx.close_sse_stream()
