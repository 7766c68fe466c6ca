"""A server without a transport: compiles one function per method, which all transports call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, nullcontext
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from ...mcp.downgrades import downgrade_tool
from ...mcp.errors import INTERNAL_ERROR, INVALID_PARAMS, ProtocolError
from ...mcp.vocabulary import PAGES, PAGES_EXTENSION, SECTIONS, SERVER_INFO_META_KEY, SKILLS_EXTENSION
from ...observability.failures import Failures
from ...observability.logs import make_logger, name_after
from ...observability.scope import SCOPE
from ...values.modules import is_observed
from ..core.call_state import record_status
from ..core.feature import Feature, ServerContext
from ..core.hub import Hub
from ..core.lists import Lists, Shows, StaleCursorError
from ..core.principal import find_current
from ..execution.threads import Threads
from ..features.changes import Changes
from ..features.input_requests import InputRequestRunner
from ..features.request_states import RequestStates
from ..handlers.lifespan import Lifespan
from ..methods.subscriptions import LISTENING, Listeners
from ..middlewares.lost_store import explain_lost_store
from ..observability.instrumentation import Instrumentation, explain_internal_error
from ..protocol.sender import PATIENCE
from .optional_features import get_scopes, get_tasks, make_task_methods
from .toolsets import Toolsets

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...mcp.revisions import Revision
    from ...package import Package
    from ...state.store import Store
    from ..core.principal import Principal
    from ..core.request import Answer, Request, Result
    from ..core.task_engine import TaskEngine
    from ..observability.audit import Recorder
    from ..protocol.client_subscriptions import Change

_PAGES: Final = 64
"""The maximum number of cached first pages; a page's key is its list, revision and scopes."""

_COMMON: Final = ("initialize", "ping", "server/discover", LISTENING, "notifications/initialized")
"""Methods that no feature serves, although clients call them often enough to cache their functions."""

LISTS: Final = {section.method: section.name for section in SECTIONS}
"""The names of the lists, such as `tools`, by list method, such as `tools/list`."""

STOPPED: Final = (
    "The server stopped before it could respond. The request may have taken effect; check before you send it again."
)
"""The error message for requests that are still pending when the server stops."""


class Core(Hub):
    """A server without a transport.

    Attributes:
        lists: The primitives' definitions by list name.
        tools: Shows and hides tools for all clients.
        prompts: Shows and hides prompts for all clients.
        resources: Shows and hides resources and resource templates for all clients, and reports resource updates.
        toolsets: The manifest's toolsets, and the selected toolsets.
        tasks: The task service; `None` if no tool has `taskSupport`.
        threads: The thread pool for plain `def` handlers.
        failures: Exceptions that handlers raised, for in-process clients.
        recorder: Writes calls to the audit log; `None` if calls are not recorded.
        instrumentation: Traces, measures and records messages.
        lifespan: Starts and stops the handlers and the store.
        methods: The functions that serve the features' methods, such as `tools/call`.
        input_requests: Runs requests during which the server may send requests to the client.
        listeners: The open `subscriptions/listen` streams (MCP 2026-07-28 and later).
        has_sessions: True if connections outlive a request (MCP 2025-11-25 and earlier).
    """

    def __init__(
        self,
        package: Package,
        handlers: object,
        features: Sequence[Feature],
        user: Principal,
        store: Store,
        recorder: Recorder | None = None,
        threads: Threads | None = None,
        toolsets: Sequence[str] = (),
        engine: TaskEngine | None = None,
    ) -> None:
        """Create a server; `build_core` checks the handlers first."""
        super().__init__(package, store, get_scopes(package), user)
        self.toolsets = Toolsets(package.manifest, toolsets)
        self.recorder = recorder
        self.threads = threads or Threads()
        self.tasks = get_tasks(package, store, recorder, engine)
        self.has_sessions = True
        self.logs = (package.manifest["server"].get("capabilities") or {}).get("logging") is True
        self.listeners = Listeners(self)
        self.lifespan = Lifespan(
            handlers,
            partial(_run_store, package, store),
            None if recorder is None else recorder.flush,
            nullcontext if self.tasks is None else self.tasks.run,
        )
        listings = {name: entries for feature in features for name, entries in feature.make_listings().items()}
        lists = Lists(listings, package.manifest, lambda all_: Changes(store, all_, self._publish))
        self._lists = lists
        self.lists = lists.by_name
        self.tools, self.prompts, self.resources = lists.tools, lists.prompts, lists.resources
        self.failures = Failures()
        log, scopes, failures = make_logger(package.name), self.scopes, self.failures
        server = ServerContext(package, handlers, lists, log, scopes, store, self.tasks, self.threads, failures)
        self.methods: dict[str, Answer] = {}
        states = RequestStates(store, package.manifest["server"]["name"], PATIENCE)
        self.input_requests = InputRequestRunner(PATIENCE, store, states)
        for feature in features:
            self.methods |= feature.list_handlers(server)
        self.instrumentation = Instrumentation(package, recorder)
        self._pending: set[asyncio.Task[Any]] = set()
        self._stopped: set[asyncio.Task[Any]] = set()
        self._pages: dict[_Page, Mapping[str, Any]] = {}
        self._task_methods = make_task_methods(self)
        self._answers: dict[str, Answer] = {}
        self._server_meta = {SERVER_INFO_META_KEY: self.identity}

    async def answer(self, request: Request) -> Result:
        """Return a message's result. `request` is the current scope while the message is handled.

        Raises:
            ProtocolError: The message is invalid or was refused.
        """
        answer = self._answers.get(request.method) or self._compile(request.method)
        request.secrets = SCOPE.get().secrets  # for an outer call whose handler calls this server
        token = SCOPE.set(request)
        try:
            # Over HTTP, only traced messages have a peer.
            is_traced = (request.peer is not None or request.transport != "http") and is_observed()
            if is_traced or (self.recorder is not None and request.method == "tools/call"):
                result = await self.instrumentation.observe(answer, request, is_traced=is_traced)
            else:
                result = await answer(request)
        except ProtocolError:
            raise
        except Exception as error:  # noqa: BLE001 - logged, and not shown to the caller
            raise explain_internal_error(request, error) from None
        finally:
            SCOPE.reset(token)
        # Pages in the cache already have these fields.
        if result is None or request.method in LISTS or "stateless" not in request.revision.features:
            return result
        return self._stamp(result)

    def _stamp(self, result: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add the fields that every result has since MCP 2026-07-28: `resultType` and the server's identity."""
        meta = result.get("_meta")
        return {
            "resultType": "complete",
            **result,
            "_meta": {**meta, **self._server_meta} if meta else self._server_meta,
        }

    def _compile(self, method: str) -> Answer:
        """Return the function that handles a method, wrapped in all middleware."""
        answer: Answer = _pass_on
        if method in LISTS and LISTS[method] in self.lists:
            answer = self._admit(self._list)
        elif method in self.methods:
            answer = self._admit(self.methods[method], may_ask=True)
        answer = self.listeners.wrap(method, answer)
        if self._task_methods is not None:
            answer = self._task_methods.wrap(method, answer)
        if self.store.is_shared or self.tasks is not None:
            answer = explain_lost_store(self, answer)
        if method != LISTENING:
            answer = self._track(answer)
        if self.serves(method) or method in _COMMON:  # no cache for unknown methods
            self._answers[method] = answer
        return answer

    def _admit(self, answer: Answer, *, may_ask: bool = False) -> Answer:
        """Return a function that handles valid requests. It passes others to `call_next`, which raises an error."""
        has_toolsets, scopes, questions = any(True for _ in self.toolsets), self.scopes, self.input_requests

        async def call(request: Request) -> Result:
            if request.id is None:
                return await request.call_next(request)
            if not request.is_admissible:
                await request.call_next(request)  # raises
            if scopes is not None:
                request.principal = scopes.widen(request.principal)
            if has_toolsets:
                request.tools = self.toolsets.list_present()
            if request.record is not None:
                request.record.principal = request.principal
            if not may_ask:
                return await answer(request)
            try:
                if "requestState" in request.params or "inputResponses" in request.params:
                    await questions.restore(request)
                result = await answer(request)
                if request.rounds is None and result is not None and "requestState" not in result:
                    return result
                return await questions.finish(request, result)
            except BaseException as error:
                # Raising in `handle_error` would add its frame, which refers to the error, to the traceback: a
                # reference cycle.
                if (instead := await questions.handle_error(request, error)) is None:
                    raise
                return instead

        return call

    def _track(self, answer: Answer) -> Answer:
        """Return a function that registers each request until it completes, so that `end_requests` can cancel it."""
        pending, stopped = self._pending, self._stopped

        async def call(request: Request) -> Result:
            task = asyncio.current_task()
            if request.id is None or task is None or task in pending:
                return await answer(request)
            pending.add(task)
            try:
                return await answer(request)
            except asyncio.CancelledError:
                # A count above zero means that someone else also cancelled the task, which must propagate.
                if task not in stopped or task.uncancel():
                    raise
            finally:
                pending.discard(task)
                stopped.discard(task)
            record_status("cancelled", "cancelled")
            raise ProtocolError(INTERNAL_ERROR, STOPPED)

        return call

    def end_requests(self) -> None:
        """Fail each pending request with an error. Listening streams are closed by `end_streams`."""
        for task in self._pending - self._stopped:
            self._stopped.add(task)
            task.cancel()

    async def complete(self, elicitation: str) -> bool:
        """Notify the client that the user completed a URL elicitation (MCP 2025-11-25, client/elicitation).

        Args:
            elicitation: The elicitation ID.

        Returns:
            True if a connected client received its first notification of the completion.
        """
        return await self.input_requests.urls.complete(elicitation)

    def serves(self, method: str) -> bool:
        """Return whether a feature of this server serves an MCP method."""
        return method in self.methods or LISTS.get(method) in self.lists

    @cached_property
    def extensions(self) -> dict[str, dict[str, Any]]:
        """The MCP extensions that the server advertises, with their settings (MCP 2026-07-28, `ServerCapabilities`)."""
        extensions_by_name: dict[str, dict[str, Any]] = {}
        if any(uri.startswith(PAGES) for uri in (*self.package.resources, *self.package.templates)):
            extensions_by_name[PAGES_EXTENSION] = {}
        if "skills/list" in self.methods:
            extensions_by_name[SKILLS_EXTENSION] = {"directoryRead": True}
        return extensions_by_name

    def shows_tool(self, name: str) -> bool:
        """Return whether a tool is visible to the caller of the current HTTP request."""
        tools = self.toolsets.list_present()
        if name not in self.lists.get("tools", ()) or (tools is not None and name not in tools):
            return False
        scopes = self.scopes
        return scopes is None or scopes.allows(scopes.widen(find_current()), "tools", name)

    def stop(self) -> None:
        """Prepare to stop: start no tasks and close listening streams."""
        self.is_stopping = True
        if self.tasks is not None:
            self.tasks.stop()
        self.end_streams()

    def end_streams(self) -> None:
        """Close all listening streams."""
        for end in self.streams:
            end()

    async def _publish(self, change: Change) -> None:
        if change.uri is None:
            self.changes.add(change.kind)
        for publish in self.publishers:
            await publish(change)

    async def _list(self, request: Request) -> Result:
        """Return a page of a list. First pages are cached until the list changes, because all clients request them."""
        try:
            return self._find_page(
                LISTS[request.method], request.params.get("cursor"), request.revision, request.principal, request.tools
            )
        except StaleCursorError:
            raise ProtocolError(INVALID_PARAMS, "Invalid cursor") from None

    def _find_page(
        self, name: str, cursor: str | None, revision: Revision, principal: Principal, present: frozenset[str] | None
    ) -> Mapping[str, Any]:
        allowed = None if self.scopes is None else self.scopes.select_relevant(principal, name)
        tools = present if name == "tools" else None
        key = _Page(name, self.lists[name].version, revision.date, principal.kind, allowed, tools)
        if cursor is None and key in self._pages:
            return self._pages[key]
        shows: Shows | None = None if self.scopes is None else partial(self.scopes.shows, principal, name)
        if tools is not None:
            shows = partial(_shows_tool, tools, shows)
        answer = self._lists.answer(name, cursor, revision, shows)
        if name == "tools":
            answer["tools"] = [downgrade_tool(definition, revision) for definition in answer["tools"]]
        page = self._stamp(answer) if revision.has("stateless") else answer
        if cursor is None:
            pages = [(known, each) for known, each in self._pages.items() if known[0] != name or known[1] == key[1]]
            self._pages = dict(pages[-_PAGES:])
            self._pages[key] = page
        return page


async def _pass_on(request: Request) -> Result:
    return await request.call_next(request)


def _shows_tool(tools: frozenset[str], shows: Shows | None, name: str) -> bool:
    return name in tools and (shows is None or shows(name))


class _Page(NamedTuple):
    name: str
    version: int
    revision: str
    kind: str
    allowed: frozenset[str] | None
    tools: frozenset[str] | None


@asynccontextmanager
async def _run_store(package: Package, store: Store) -> AsyncGenerator[None, None]:
    """Run the store during the block, and name the package in the store's log lines."""
    name_after(package.name)
    async with store.run():
        yield
