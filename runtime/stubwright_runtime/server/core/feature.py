"""The features of a server, each of which answers some of the protocol's methods, and the objects that they share.

A feature does not depend on any transport.
"""

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
        """Return whether a principal may use an entry of a list."""
        ...

    def shows(self, principal: Principal, section: str, key: str) -> bool:
        """Return whether a list shows an entry to a principal."""
        ...

    def reaches(self, principal: Principal, uri: str) -> bool:
        """Return whether a principal may read the resource at a URI."""
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
class HandlerMethod:
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
class ServerContext:
    """The objects that the features of one server share.

    Attributes:
        package: The package.
        handlers: The handlers object.
        lists: The server's lists.
        log: The log, for details that callers must not see.
        scopes: The scopes that entries need; `None` without any.
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
        """Return whether an entry exists for the caller: it is on, in its toolset, and within its scopes."""
        if key not in self.lists.by_name[section]:
            return False
        if section == "tools" and request.tools is not None and key not in request.tools:
            return False
        return self.scopes is None or self.scopes.allows(request.principal, section, key)

    @property
    def sanitize_mode(self) -> SanitizeMode:
        """The sanitize mode of resources and prompts: the manifest's own `policy.sanitize`."""
        policy: Mapping[str, Any] = self.package.manifest.get("policy") or {}
        sanitize_mode: SanitizeMode = policy.get("sanitize", DEFAULT_SANITIZE_MODE)
        return sanitize_mode


class Feature(Protocol):
    """One feature."""

    def list_required_methods(self) -> list[HandlerMethod]:
        """Return the methods that the handlers must have for it."""
        ...

    def make_listings(self) -> Mapping[str, Mapping[str, dict[str, Any]]]:
        """Return its lists by their names in results, each with its definitions by their keys, in order."""
        ...

    def list_handlers(self, server: ServerContext) -> Mapping[str, Answer]:
        """Return the methods that it answers, such as `prompts/get`."""
        ...
