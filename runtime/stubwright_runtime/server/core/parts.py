"""The parts of a server, each of which answers some of the protocol's methods, and the host that they share.

Takes requests whose parameters are well-formed; gives results as they go on the wire in the newest revision. A part
knows no transport.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias, TypeVar

from ...errors import ToolError
from ...mcp.errors import INTERNAL_ERROR, ProtocolError
from ...observability.failures import Failures
from ...package import EXACT_FORMATS
from ...state.store import StateLost, find_state_lost
from ...values.sanitizing import DEFAULT_EXTENT, Extent, clean
from ..execution.invocation import Method
from ..execution.slots import Slot
from ..execution.threads import NoFreeThreadError, Threads
from .call_state import make_reference
from .context import Channel, Context

if TYPE_CHECKING:
    import logging

    from ...package import Package
    from ...state.store import Store
    from .lists import Lists
    from .principal import Principal

_T = TypeVar("_T")


class Scopes(Protocol):
    """The scopes that entries need, and the decisions about callers.

    Attributes:
        challenges: True if entries are listed even if a caller over HTTP lacks their scopes, and a use asks for these.
        every: All scopes that any entry needs.
    """

    challenges: bool
    every: Sequence[str]

    def widen(self, principal: Principal) -> Principal:
        """Return a principal with the scopes that its own scopes imply."""
        ...

    def allows(self, principal: Principal, section: str, key: str) -> bool:
        """Tell whether a principal may use an entry of a list."""
        ...

    def shows(self, principal: Principal, section: str, key: str) -> bool:
        """Tell whether a list shows an entry to a principal."""
        ...

    def find_lacking(self, principal: Principal) -> Sequence[str]:
        """Return the scopes that any entry needs and a principal lacks."""
        ...

    def select_relevant(self, principal: Principal, section: str) -> frozenset[str]:
        """Return the scopes of a principal that a list depends on."""
        ...

    def find_lacking_of_message(self, principal: Principal, message: object) -> Sequence[str]:
        """Return all scopes that a JSON-RPC message needs, if its sender lacks some of them and may be told."""
        ...


@dataclass(frozen=True, slots=True)
class Request:
    """One request.

    Attributes:
        method: The method, such as `tools/call`.
        id: The JSON-RPC id.
        params: The parameters, as they came.
        revision: The revision that the caller speaks.
        channel: The way to the caller.
        principal: The caller.
        slot: The resources that the request takes up while it runs.
        more: Additions of the server's features to the context, by their names there.
        tools: The names of the tools of its toolset; `None` for all tools.
    """

    method: str
    id: str | int
    params: Mapping[str, Any]
    revision: str
    channel: Channel
    principal: Principal
    slot: Slot = field(default_factory=Slot)
    more: Mapping[str, Any] = field(default_factory=dict[str, Any])
    tools: frozenset[str] | None = None

    def with_more(self, more: Mapping[str, Any]) -> Request:
        """Return a copy with these additions to the context."""
        return replace(self, more=more)


Answer: TypeAlias = Callable[[Request], Awaitable[dict[str, Any]]]
"""Gives the result of a request, or raises `Refused`."""


@dataclass(frozen=True, slots=True)
class Needed:
    """A method of the handlers: its name, its parameters and result as a stub has them.

    An optional method is only checked if it is defined.
    """

    name: str
    parameters: tuple[str, ...]
    returns: str
    is_optional: bool = False

    @property
    def stub(self) -> str:
        """The method, to be pasted into the handlers' class."""
        signature = ", ".join(("self", *self.parameters))
        return f"    async def {self.name}({signature}) -> {self.returns}:\n        raise NotImplementedError"


@dataclass(frozen=True, slots=True)
class Host:
    """The objects that the parts of one server share.

    Attributes:
        package: The package.
        handlers: The handlers object.
        lists: The server's lists.
        log: The log, for details that callers must not see.
        scopes: The scopes that entries need; `None` if they need none.
        store: The store of state that outlives a request.
        tasks: The task service; `None` if no tool has `taskSupport`.
        threads: The pool of threads for plain `def` methods of the handlers.
        failures: Exceptions that handlers raised, for a client in this process.
    """

    package: Package
    handlers: object
    lists: Lists
    log: logging.Logger
    scopes: Scopes | None
    store: Store
    tasks: Any = None
    threads: Threads = field(default_factory=Threads)
    failures: Failures = field(default_factory=Failures)

    def offers(self, request: Request, section: str, key: str) -> bool:
        """Tell whether an entry is there for the caller: it is on, in its toolset, and within its scopes."""
        if key not in self.lists.by_name[section]:
            return False
        if section == "tools" and request.tools is not None and key not in request.tools:
            return False
        return self.scopes is None or self.scopes.allows(request.principal, section, key)

    @property
    def extent(self) -> Extent:
        """The extent of sanitizing for resources and prompts: the manifest's own `policy.sanitize`."""
        policy: Mapping[str, Any] = self.package.manifest.get("policy") or {}
        extent: Extent = policy.get("sanitize", DEFAULT_EXTENT)
        return extent

    def make_context(self, request: Request, name: str, stem: str, extension: Mapping[str, Any]) -> Context:
        """Return the `ctx` of a handler, of a generated class if the manifest declares questions, handles or pages.

        Args:
            request: The request.
            name: The name or URI that was asked for.
            stem: The start of the names of its classes.
            extension: Its settings under `stubwright` in the manifest.
        """
        kind, more = Context, request.more
        questions = extension.get("ask")
        if questions or "handles" in extension or "paginate" in extension:
            kind = self.package.load_context(f"{stem}Context")
        if questions and self.package.has_exact_formats:
            questions = {key: {**each, EXACT_FORMATS: True} for key, each in questions.items()}
        if questions:
            more = {**more, "_questions": questions}
        return kind(
            request_id=request.id,
            revision=request.revision,
            name=name,
            principal=request.principal,
            tools=self.lists.tools,
            prompts=self.lists.prompts,
            resources=self.lists.resources,
            _channel=request.channel,
            slot=request.slot,
            **more,
        )

    async def handle(self, method: Method, read: Callable[[Any], _T], *arguments: object, context: Context) -> _T:
        """Call a method of the handlers, and return its result as converted by `read`.

        Raises:
            ProtocolError: The method raised, or `read` rejected its result: an internal error, whose reason is only in
                the log (MCP 2025-11-25, server/prompts and server/resources, "Error Handling"), unless it is a
                `ToolError`, whose text the caller gets. Or there was no thread.
            StateLost: The method needed the store, which cannot be reached.
        """
        try:
            return read(await method(*arguments, context=context))
        except NoFreeThreadError as error:
            raise ProtocolError(INTERNAL_ERROR, str(error)) from None
        except BaseException as error:  # a handler's SystemExit must not end the server
            if context.leaves(error) or isinstance(error, ProtocolError):
                raise
            if isinstance(error, ToolError):
                raise ProtocolError(INTERNAL_ERROR, clean(error.message)) from None
            if find_state_lost(error) is not None:
                raise StateLost(f"{method.name} needs the store", is_unknown=True) from error
            reference_id = make_reference()
            self.failures.note(reference_id, error)
            self.log.exception("%s failed (reference %s)", method.name, reference_id)
            raise ProtocolError(INTERNAL_ERROR, f"Internal error in {method.name} (reference {reference_id})") from None


class Part(Protocol):
    """One part."""

    def list_needed(self) -> list[Needed]:
        """Return the methods that the handlers must have for it."""
        ...

    def make_listings(self) -> Mapping[str, Mapping[str, dict[str, Any]]]:
        """Return its lists by their names in results, each with its definitions by their keys, in order."""
        ...

    def list_answers(self, host: Host) -> Mapping[str, Answer]:
        """Return the methods that it answers, such as `prompts/get`."""
        ...
