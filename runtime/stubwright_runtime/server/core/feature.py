"""The interface for features, which implement MCP methods, and the objects they share."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol

from ...observability.failures import Failures
from ...values.sanitizing import DEFAULT_SANITIZE_MODE, SanitizeMode
from ..execution.threads import Threads

if TYPE_CHECKING:
    import logging

    from ...package import Package
    from ...state.store import Store
    from .lists import Lists
    from .principal import Principal
    from .request import Answer, Request


class Scopes(Protocol):
    """The scopes that entries require, and authorization decisions.

    Attributes:
        challenges: True if lists over HTTP include entries whose scopes the caller lacks; a call then requests these
            scopes.
        every: All scopes that any entry requires.
    """

    challenges: bool
    every: Sequence[str]

    def widen(self, principal: Principal) -> Principal:
        """Return a principal with all implied scopes."""
        ...

    def allows(self, principal: Principal, section: str, key: str) -> bool:
        """Return whether a principal may use a list entry."""
        ...

    def shows(self, principal: Principal, section: str, key: str) -> bool:
        """Return whether a list shows an entry to a principal."""
        ...

    def reaches(self, principal: Principal, uri: str) -> bool:
        """Return whether a principal may read the resource at a URI."""
        ...

    def find_lacking(self, principal: Principal) -> Sequence[str]:
        """Return the scopes that any entry requires and a principal lacks."""
        ...

    def select_relevant(self, principal: Principal, section: str) -> frozenset[str]:
        """Return the scopes of a principal that affect a list."""
        ...

    def find_lacking_of_message(self, principal: Principal, message: object) -> Sequence[str]:
        """Return all scopes that a JSON-RPC message requires if its sender lacks some and can be challenged."""
        ...


@dataclass(frozen=True, slots=True)
class HandlerMethod:
    """The signature of a handler method. An optional method is checked only if it is defined."""

    name: str
    parameters: tuple[str, ...]
    returns: str
    is_optional: bool = False

    @property
    def stub(self) -> str:
        """The source of a stub for the handlers class."""
        signature = ", ".join(("self", *self.parameters))
        return f"    async def {self.name}({signature}) -> {self.returns}:\n        raise NotImplementedError"


@dataclass(frozen=True, slots=True)
class ServerContext:
    """The objects that the features of one server share.

    Attributes:
        package: The package.
        handlers: The handlers object.
        lists: The server's lists.
        log: The logger, for details that callers must not see.
        scopes: The scopes that entries require; `None` if none do.
        store: The store of state that outlives a request.
        tasks: The task service; `None` if no tool has `taskSupport`.
        threads: The thread pool for plain `def` handlers.
        failures: Exceptions from handlers, for in-process clients.
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
        """Return whether an entry's state and scopes make it visible to the caller."""
        if key not in self.lists.by_name[section].visible:
            return False
        return self.scopes is None or self.scopes.allows(request.principal, section, key)

    @property
    def sanitize_mode(self) -> SanitizeMode:
        """The sanitize mode of resources and prompts: the manifest's top-level `policy.sanitize`."""
        policy: Mapping[str, Any] = self.package.manifest.get("policy") or {}
        sanitize_mode: SanitizeMode = policy.get("sanitize", DEFAULT_SANITIZE_MODE)
        return sanitize_mode


class Feature(Protocol):
    """A feature of a server, such as tools or prompts."""

    def list_required_methods(self) -> list[HandlerMethod]:
        """Return the methods that the handlers must define."""
        ...

    def make_listings(self) -> Mapping[str, Mapping[str, dict[str, Any]]]:
        """Return each list's definitions, keyed by name or URI, in order. The outer keys are the list names in
        results."""
        ...

    def list_handlers(self, server: ServerContext) -> Mapping[str, Answer]:
        """Return the functions for its methods, such as `prompts/get`."""
        ...
