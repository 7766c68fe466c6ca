"""The interface of features, which implement MCP methods, and the objects that features share."""

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
    """The scopes that primitives require, and authorization decisions.

    Attributes:
        challenges: True if lists over HTTP include entries whose scopes the caller lacks. A call to such an entry asks
            the client to request these scopes.
        every: All scopes that any primitive requires.
    """

    challenges: bool
    every: Sequence[str]

    def widen(self, principal: Principal) -> Principal:
        """Return a principal with the scopes that its own scopes imply."""
        ...

    def allows(self, principal: Principal, section: str, key: str) -> bool:
        """Return whether a principal has the scopes to use an entry."""
        ...

    def shows(self, principal: Principal, section: str, key: str) -> bool:
        """Return whether a list includes an entry for a principal."""
        ...

    def reaches(self, principal: Principal, uri: str) -> bool:
        """Return whether a principal has the scopes to read the resource at a URI."""
        ...

    def find_lacking(self, principal: Principal) -> Sequence[str]:
        """Return the scopes that any primitive requires and that a principal lacks."""
        ...

    def select_relevant(self, principal: Principal, section: str) -> frozenset[str]:
        """Return the principal's scopes that affect the contents of a list."""
        ...

    def find_lacking_of_message(self, principal: Principal, message: object) -> Sequence[str]:
        """Return all scopes that a JSON-RPC message requires, if the sender lacks some and can be challenged."""
        ...


@dataclass(frozen=True, slots=True)
class HandlerMethod:
    """The signature of a handler method. If the method is optional, it is checked only if the handlers define it."""

    name: str
    parameters: tuple[str, ...]
    returns: str
    is_optional: bool = False

    @property
    def stub(self) -> str:
        """Source code to paste into the handlers class."""
        signature = ", ".join(("self", *self.parameters))
        return f"    async def {self.name}({signature}) -> {self.returns}:\n        raise NotImplementedError"


@dataclass(frozen=True, slots=True)
class ServerContext:
    """The objects that one server's features share.

    Attributes:
        package: The package.
        handlers: The handlers object.
        lists: The visible tools, resources and prompts.
        log: The logger for details that callers must not see.
        scopes: The scopes that primitives require; `None` if none require scopes.
        store: The store of state that outlives a request.
        tasks: The task service; `None` if no tool has `taskSupport`.
        threads: The thread pool for plain `def` handlers.
        failures: Exceptions that handlers raised, for in-process clients.
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
        """Return whether a request can reach an entry of a list (see `Request.reaches`)."""
        return request.reaches(self.lists.by_name[section], key, self.scopes)

    @property
    def sanitize_mode(self) -> SanitizeMode:
        """The sanitize mode of resources and prompts: the manifest's top-level `policy.sanitize`."""
        policy: Mapping[str, Any] = self.package.manifest.get("policy") or {}
        sanitize_mode: SanitizeMode = policy.get("sanitize", DEFAULT_SANITIZE_MODE)
        return sanitize_mode


class Feature(Protocol):
    """A feature of a server, such as tools or prompts."""

    def list_required_methods(self) -> list[HandlerMethod]:
        """Return the methods that the handlers must define for this feature."""
        ...

    def make_listings(self) -> Mapping[str, Mapping[str, dict[str, Any]]]:
        """Return each list's definitions in order, by name or URI. The outer keys are the list names in results."""
        ...

    def list_handlers(self, server: ServerContext) -> Mapping[str, Answer]:
        """Return the functions that handle the feature's MCP methods, such as `prompts/get`."""
        ...
