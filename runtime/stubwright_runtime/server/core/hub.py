"""The shared objects of one server, which `app.core.Core` extends."""

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
    """The shared objects of one server.

    Attributes:
        package: The package.
        store: The store of state that outlives a request.
        scopes: The scopes that entries require; `None` if none do.
        user: The local user.
        changes: The log of list changes.
        publishers: Functions that notify clients of changes.
        streams: Functions that close listening streams.
        identity: The name, version and other details of the server (MCP 2026-07-28, schema, `Implementation`).
        is_stopping: True if the server is stopping, so that new listening streams close immediately.
    """

    def __init__(self, package: Package, store: Store, scopes: Scopes | None, user: Principal) -> None:
        """Create the hub."""
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
