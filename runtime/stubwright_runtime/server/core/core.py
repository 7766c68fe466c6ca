"""A server without a transport, made of a package, its handlers and its store.

Takes messages as exchanges; gives results as they go on the wire. The direct path and the SDK both answer by it, so
that there is one order of steps, and one answer, whichever way a message takes.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, nullcontext
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...mcp.downgrades import downgrade_tool
from ...mcp.errors import INVALID_PARAMS, ProtocolError
from ...mcp.revisions import Revision
from ...mcp.vocabulary import PAGES, PAGES_EXTENSION, SECTIONS, SERVER_INFO_META_KEY, SKILLS_EXTENSION
from ...observability.failures import Failures
from ...observability.logs import make_logger, name_after
from ..declared import get_scopes, get_tasks, list_task_methods
from ..execution.slots import Slot
from ..execution.threads import Threads
from ..features.changes import Changes
from ..features.input_requests import InputRequestRunner
from ..features.listening import Listeners
from ..handlers.lifespan import Lifespan
from ..middlewares.in_flight import InFlight
from ..middlewares.lost_store import LostStore
from ..middlewares.request_state import EncryptedRequestState
from ..observability.instrumentation import Instrumentation
from ..protocol.outgoing import PATIENCE
from ..protocol.wants import ChangeLog
from ..toolsets import Toolsets
from .call_state import CURRENT
from .exchange import chain_steps
from .lists import Lists, Shows, StaleCursorError
from .parts import Answer, Host, Part, Request
from .principal import Principal, find_current

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ...package import Package
    from ...state.store import Store
    from ..observability.audit import Recorder
    from .exchange import Exchange, Middleware, Rest, Result
    from .lists import Change, Publish

_PAGES: Final = 64
"""First pages that are kept, at most: of each list, for each revision, and for callers with the same scopes."""

LISTS: Final = {section.method: section.name for section in SECTIONS}
"""The lists, by the methods that list them."""


class Core:
    """The server.

    Attributes:
        package: The package.
        lists: Its lists, by name.
        tools: The tools, to switch them on and off for all clients.
        prompts: The prompts, likewise.
        resources: The resources and resource templates, likewise, and to tell that one changed.
        scopes: The scopes that entries need; `None` if they need none.
        toolsets: The toolsets, which select the tools that are present.
        store: The store of state that outlives a request.
        tasks: The task service; `None` if no tool has `taskSupport`.
        threads: The pool of threads for plain `def` methods of the handlers.
        failures: Exceptions that handlers raised, for a client in this process.
        recorder: The recorder of calls; `None` if they are not recorded.
        instrumentation: Sees all messages.
        in_flight: Knows the requests that are being answered.
        lifespan: The handlers' own life, and the store's.
        methods: The methods of the parts, such as `tools/call`.
        input_requests: Asks clients in the middle of requests.
        changes: The log of changes of the lists.
        publishers: Functions that tell clients of changes.
        streams: Functions that end the streams of changes, each with its answer.
        listeners: The streams of clients from 2026-07-28 on.
        identity: The name, version and other details of the server (MCP 2026-07-28, schema, `Implementation`).
        is_stopping: True if the server is going to end, so that streams that only listen end when they open.
        has_sessions: True if there are connections, up to 2025-11-25, that outlive a request.
    """

    def __init__(
        self,
        package: Package,
        handlers: object,
        parts: Sequence[Part],
        user: Principal,
        store: Store,
        recorder: Recorder | None = None,
        threads: Threads | None = None,
        toolsets: Sequence[str] = (),
    ) -> None:
        """Put the parts together; `build_core` checks the handlers first."""
        self.toolsets = Toolsets(package.manifest, toolsets)
        self.package = package
        self.store = store
        self.recorder = recorder
        self.threads = threads or Threads()
        self.scopes = get_scopes(package)
        self.tasks = get_tasks(package, store, recorder)
        self.is_stopping = False
        self.has_sessions = True
        self.changes = ChangeLog()
        self.publishers: list[Publish] = []
        self.streams: list[Callable[[], None]] = []
        self.listeners = Listeners(self)
        self.lifespan = Lifespan(
            handlers,
            partial(_kept, package, store),
            None if recorder is None else recorder.flush,
            nullcontext if self.tasks is None else self.tasks.run,
        )
        listings = {name: entries for part in parts for name, entries in part.make_listings().items()}
        lists = Lists(listings, package.manifest, lambda all_: Changes(store, all_, self._publish))
        self._lists = lists
        self.lists = lists.by_name
        self.tools, self.prompts, self.resources = lists.tools, lists.prompts, lists.resources
        self.failures = Failures()
        log, scopes, failures = make_logger(package.name), self.scopes, self.failures
        host = Host(package, handlers, lists, log, scopes, store, self.tasks, self.threads, failures)
        self.methods: dict[str, Answer] = {}
        for part in parts:
            self.methods |= part.list_answers(host)
        self.instrumentation = Instrumentation(package, recorder, user)
        self.in_flight = InFlight()
        self.input_requests = InputRequestRunner(PATIENCE, store)
        info: Mapping[str, Any] = package.manifest["server"]
        self.identity = {key: info[key] for key in _IDENTITY if info.get(key)}
        self._user = user
        self._pages: dict[_Page, dict[str, Any]] = {}
        # The outermost first: refusals of the other steps are measured,
        # too, and those inside `LostStore` may need the store.
        self._steps: tuple[Middleware, ...] = (
            self.instrumentation,
            self.in_flight,
            LostStore(self.stamp),
            EncryptedRequestState(store, package.manifest["server"]["name"], PATIENCE, user),
            *list_task_methods(self),
            self.listeners,
            self._answer,
        )

    def make_answerer(self, rest: Rest) -> Rest:
        """Return a function that answers a message or raises ProtocolError; `rest` answers what no part serves."""
        return chain_steps(self._steps, rest)

    async def complete(self, elicitation: str) -> bool:
        """Tell a client that all is done at the URL that it was asked to open (MCP 2025-11-25, client/elicitation).

        Args:
            elicitation: The id that the question was asked with.

        Returns:
            True if a client was told: it is still connected, and was not told of this question before.
        """
        return await self.input_requests.urls.complete(elicitation)

    def serves(self, method: str) -> bool:
        """Tell whether a part serves a method, or a list."""
        return method in self.methods or LISTS.get(method) in self.lists

    @cached_property
    def extensions(self) -> dict[str, dict[str, Any]]:
        """The extensions of MCP that it announces, with their settings (MCP 2026-07-28, `ServerCapabilities`)."""
        extensions_by_name: dict[str, dict[str, Any]] = {}
        if any(uri.startswith(PAGES) for uri in (*self.package.resources, *self.package.templates)):
            extensions_by_name[PAGES_EXTENSION] = {}
        if "skills/list" in self.methods:
            extensions_by_name[SKILLS_EXTENSION] = {"directoryRead": True}
        return extensions_by_name

    def shows_tool(self, name: str) -> bool:
        """Tell whether a tool is there for the caller of the request over HTTP that is being answered."""
        tools = self.toolsets.list_present()
        if name not in self.lists.get("tools", ()) or (tools is not None and name not in tools):
            return False
        return self.scopes is None or self.scopes.allows(self.find_principal(over_http=True), "tools", name)

    def find_principal(self, *, over_http: bool) -> Principal:
        """Return the sender of the request that is being answered, with all scopes that its own scopes imply."""
        caller = find_current(over_http=over_http, user=self._user)
        return caller if self.scopes is None else self.scopes.widen(caller)

    def stamp(self, result: dict[str, Any], revision: str) -> dict[str, Any]:
        """Add the fields of every result from 2026-07-28 on: that it is complete, and the identity of the server."""
        if not Revision.from_date(revision).has("stateless"):
            return result
        meta = {**result.get("_meta", {}), SERVER_INFO_META_KEY: self.identity}
        return {"resultType": "complete", **result, "_meta": meta}

    def stop(self) -> None:
        """Begin no more tasks, since the server is going to end; those under way go on. Subscriptions are answered."""
        self.is_stopping = True
        if self.tasks is not None:
            self.tasks.stop()
        self.end_streams()

    def end_streams(self) -> None:
        """Answer the requests that stay open until they are ended, such as streams of changes."""
        for end in self.streams:
            end()

    async def _publish(self, change: Change) -> None:
        """Tell all clients of a change that they want to hear of."""
        if change.uri is None:
            self.changes.add(change.kind)
        for publish in self.publishers:
            await publish(change)

    async def _answer(self, rest: Rest, exchange: Exchange) -> Result:
        """Answer the methods that parts serve; pass on any other message: the last step."""
        if exchange.id is None or not self.serves(exchange.method):
            return await rest(exchange)
        if not exchange.is_admissible:
            await rest(exchange)  # which refuses it
        principal = self.find_principal(over_http=exchange.over_http)
        if (call_state := CURRENT.get()) is not None:
            call_state.principal = principal
        params = exchange.params or {}
        if exchange.method in LISTS:
            try:
                return self._list(exchange.method, params.get("cursor"), exchange.revision, principal)
            except StaleCursorError:
                raise ProtocolError(INVALID_PARAMS, "Invalid cursor") from None
        slot = Slot(self.threads)
        channel, tools = exchange.make_channel(), self.toolsets.list_present()
        request = Request(
            exchange.method, exchange.id, params, exchange.revision, channel, principal, slot, tools=tools
        )
        result = await self.input_requests.answer(self.methods[exchange.method], request)
        return self.stamp(result, exchange.revision)

    def _list(self, method: str, cursor: str | None, revision: str, principal: Principal) -> dict[str, Any]:
        """Return a page of a list. The first is cached until the list changes, since every client begins with it."""
        name = LISTS[method]
        allowed = None if self.scopes is None else self.scopes.select_relevant(principal, name)
        tools = self.toolsets.list_present() if name == "tools" else None
        key = _Page(name, self.lists[name].version, revision, principal.kind, allowed, tools)
        if cursor is None and key in self._pages:
            return self._pages[key]
        shows: Shows | None = None if self.scopes is None else partial(self.scopes.shows, principal, name)
        if tools is not None:
            shows = partial(_shows, tools, shows)
        answer = self._lists.answer(name, cursor, revision, shows)
        if name == "tools":
            answer["tools"] = [downgrade_tool(definition, revision) for definition in answer["tools"]]
        answer = self.stamp(answer, revision)
        if cursor is None:
            pages = [(page, listed) for page, listed in self._pages.items() if page[0] != name or page[1] == key[1]]
            self._pages = dict(pages[-_PAGES:])
            self._pages[key] = answer
        return answer


def _shows(tools: frozenset[str], shows: Shows | None, name: str) -> bool:
    return name in tools and (shows is None or shows(name))


class _Page(NamedTuple):
    """The cache key of the first page of a list."""

    name: str
    version: int
    revision: str
    kind: str
    allowed: frozenset[str] | None
    tools: frozenset[str] | None


_IDENTITY: Final = ("name", "title", "version", "description", "websiteUrl", "icons")


@asynccontextmanager
async def _kept(package: Package, store: Store) -> AsyncGenerator[None, None]:
    """Run a store during the block. Everything started in it, handlers too, works for the package."""
    name_after(package.name)
    async with store.run():
        yield
