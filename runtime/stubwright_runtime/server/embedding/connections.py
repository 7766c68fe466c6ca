"""The SDK's connections of the handshake's era, and the wants of their clients.

Takes the SDK's requests and notifications; keeps, as long as a connection lives, the log level and the resources that
it asked for, and tells it of changes. From 2026-07-28 there are no connections.
"""

from __future__ import annotations

import asyncio
import weakref
from typing import TYPE_CHECKING, Any, cast

import mcp_types as types

from ...mcp.revisions import Revision
from ...mcp.vocabulary import LOG_LEVELS
from ..protocol.changes import Telling
from ..protocol.wants import Wants

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...mcp.vocabulary import LogLevel
    from ...sdk.requests import CallNext, HandlerResult, ServerRequestContext, ServerSession
    from ..protocol.wants import Change, ChangeLog


class Notification(types.Notification[Any, str]):
    """A notification as it goes on the wire."""


class _Notifier:
    """The sender of notifications on one connection."""

    def __init__(self, session: ServerSession) -> None:
        self._session = session

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Send one."""
        await self._session.send_notification(
            cast("types.ServerNotification", Notification(method=method, params=params))
        )


class Connections:
    """The connections of one server."""

    def __init__(self, changes: ChangeLog) -> None:
        """Take the log of changes."""
        self._wants: dict[int, Wants] = {}
        self._changes = changes
        self._telling: set[Telling] = set()

    async def publish(self, change: Change) -> None:
        """Have all clients hear of a change that they want to hear of."""
        for telling in self._telling:
            telling.on_change(change)

    async def greet(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Note a handshake, as a middleware, since from then on a client may cache the lists that it reads."""
        result = await call_next(ctx)
        if ctx.method == "initialize":  # the key of the connection is set right after this
            asyncio.get_running_loop().call_soon(self._greeted, ctx, self._changes.count)
        return result

    def _greeted(self, ctx: ServerRequestContext[Any, Any], changes: int) -> None:
        wants = self._of(ctx)
        wants.since = changes if wants.since is None else wants.since

    def find_level(self, ctx: ServerRequestContext[Any, Any]) -> LogLevel | None:
        """Return the least level that the caller wants; `None` if it wants no messages."""
        if Revision.from_date(ctx.protocol_version).has("stateless"):
            level = (ctx.meta or {}).get(types.LOG_LEVEL_META_KEY)
            return level if level in LOG_LEVELS else None
        wants = self._wants.get(id(ctx.session.client_params))
        return "info" if wants is None else wants.level

    async def set_level(
        self, ctx: ServerRequestContext[Any, Any], params: types.SetLevelRequestParams
    ) -> types.EmptyResult:
        """Answer `logging/setLevel` (MCP 2025-11-25, server/utilities/logging)."""
        self._of(ctx).level = params.level
        return types.EmptyResult()

    def subscribe(self, ctx: ServerRequestContext[Any, Any], uri: str) -> None:
        """Tell a connection of changes of one resource, too."""
        self._of(ctx).subscribe(uri)

    async def unsubscribe(
        self, ctx: ServerRequestContext[Any, Any], params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Answer `resources/unsubscribe`."""
        self._of(ctx).uris.discard(str(params.uri))
        return types.EmptyResult()

    async def tell(self, ctx: ServerRequestContext[Any, Any], _params: types.NotificationParams) -> None:
        """Tell a connection of changes from `notifications/initialized` on, for as long as it lives."""
        wants = self._of(ctx)
        if wants.is_told:
            return
        wants.is_told = True
        telling = Telling.join_handshake(wants, self._changes, _Notifier(ctx.session))
        self._telling.add(telling)
        try:
            await telling.run()
        finally:
            self._telling.discard(telling)

    def _of(self, ctx: ServerRequestContext[Any, Any]) -> Wants:
        """Return the wants of a connection, kept under its handshake, the only public object that lives as long."""
        connection = ctx.session.client_params
        if connection is None:
            return Wants()
        if id(connection) not in self._wants:
            self._wants[id(connection)] = Wants()
            # Another handshake may get the same `id` once this one is gone.
            weakref.finalize(connection, self._wants.pop, id(connection), None).atexit = False
        return self._wants[id(connection)]
