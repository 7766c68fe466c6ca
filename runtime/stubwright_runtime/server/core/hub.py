"""The shared objects of one server, which `app.core.Core` extends."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

from ...mcp.vocabulary import SERVER_INFO_META_KEY
from ..protocol.client_subscriptions import ChangeLog
from .principal import Principal, find_current

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...mcp.revisions import Revision
    from ...package import Package
    from ...state.store import Store
    from ..protocol.client_subscriptions import Publish
    from .feature import Scopes

_IDENTITY: Final = ("name", "title", "version", "description", "websiteUrl", "icons")


class Hub:
    """The shared objects of one server.

    Attributes:
        package: The package.
        store: The store of state that outlives a request.
        scopes: The scopes that entries require; `None` if none do.
        changes: The log of list changes.
        publishers: Functions that notify clients of changes.
        streams: Functions that close listening streams.
        identity: The name, version and other details of the server (MCP 2026-07-28, schema, `Implementation`).
        is_stopping: True if the server is stopping, so that new listening streams close immediately.
    """

    def __init__(self, package: Package, store: Store, scopes: Scopes | None, user: Principal) -> None:
        """Create the hub; `user` is the local user."""
        info: Mapping[str, Any] = package.manifest["server"]
        self.package = package
        self.store = store
        self.scopes = scopes
        self.changes = ChangeLog()
        self.publishers: list[Publish] = []
        self.streams: list[Callable[[], None]] = []
        self.identity = {key: info[key] for key in _IDENTITY if info.get(key)}
        self.is_stopping = False
        self._user = user
        self._stamp = {SERVER_INFO_META_KEY: self.identity}

    def find_principal(self, *, over_http: bool) -> Principal:
        """Return the principal of the current request, with all implied scopes."""
        caller = find_current(over_http=over_http, user=self._user)
        return caller if self.scopes is None else self.scopes.widen(caller)

    def stamp(self, result: Mapping[str, Any], revision: Revision) -> Mapping[str, Any]:
        """Add the fields that every result has in MCP 2026-07-28 and later: `resultType` and the server's identity."""
        if "stateless" not in revision.features:
            return result
        meta = result.get("_meta")
        return {"resultType": "complete", **result, "_meta": {**meta, **self._stamp} if meta else self._stamp}
