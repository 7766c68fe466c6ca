"""The state of a server that does not depend on its features; `app.core.Core` extends it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ..protocol.client_subscriptions import ChangeLog

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...package import Package
    from ...state.store import Store
    from ..protocol.client_subscriptions import Publish
    from .feature import Scopes
    from .principal import Principal

_IDENTITY: Final = ("name", "title", "version", "description", "websiteUrl", "icons")


class Hub:
    """The state of a server that does not depend on its features.

    Attributes:
        package: The package.
        store: The store of state that outlives a request.
        scopes: The scopes that primitives require; `None` if none require scopes.
        user: The principal of local clients.
        changes: The log of changes to lists.
        publishers: Functions that notify clients of a change.
        streams: Functions that close listening streams.
        identity: The server's name, version and other details (MCP 2026-07-28, schema, `Implementation`).
        is_stopping: True once the server is stopping; new listening streams then close immediately.
    """

    def __init__(self, package: Package, store: Store, scopes: Scopes | None, user: Principal) -> None:
        info: Mapping[str, Any] = package.manifest["server"]
        self.package = package
        self.store = store
        self.scopes = scopes
        self.user = user
        self.changes = ChangeLog()
        self.publishers: list[Publish] = []
        self.streams: list[Callable[[], None]] = []
        self.identity = {key: info[key] for key in _IDENTITY if info.get(key)}
        self.is_stopping = False
