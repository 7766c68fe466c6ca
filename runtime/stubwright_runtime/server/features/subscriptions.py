"""What connections of the handshake era want to hear, and the ways in which all clients hear of changes.

Takes the SDK's requests and notifications; keeps, as long as a connection lives, the log level and the resources that
it asked for. From 2026-07-28 there are no connections: each request says what it wants, and changes go to
`subscriptions/listen`.
"""

from __future__ import annotations

import asyncio
import weakref
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

import anyio
import mcp_types as types
from mcp.shared.exceptions import MCPError

from ...mcp.errors import ProtocolError
from ...mcp.revisions import Revision
from ...mcp.vocabulary import LOG_LEVELS, LogLevel
from ...sdk.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from ..core.lists import Change, Kind
from ..core.principal import current, local
from ..execution.streams import Streams, TooManyStreamsError
from ..middlewares.expiry import own_seconds_left
from ..protocol.wants import ChangeLog, Wants, check_subscriptions

if TYPE_CHECKING:
    from ...sdk.requests import CallNext, HandlerResult, ServerRequestContext


_USER: Final = local(())

_LISTS: Final[Mapping[Kind, ServerEvent]] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}


class Subscriptions:
    """The connections of one server."""

    def __init__(
        self,
        changes: ChangeLog,
        streams: Streams,
    ) -> None:
        """Start with none.

        Args:
            changes: What changed until now.
            streams: How many clients from 2026-07-28 on may listen at once.
        """
        self._bus = InMemorySubscriptionBus()
        self._wants: dict[int, Wants] = {}
        self._changes = changes
        self._streams = streams
        self._open: set[ListenHandler] = set()

    async def publish(self, change: Change) -> None:
        """Tell all clients of a change that they want to hear of."""
        event = _LISTS[change.kind] if change.uri is None else ResourceUpdated(uri=change.uri)
        await self._bus.publish(event)

    async def listen(
        self, ctx: ServerRequestContext[Any, Any], params: types.SubscriptionsListenRequestParams
    ) -> types.SubscriptionsListenResult:
        """Answer `subscriptions/listen`: a stream until the client leaves, its token expires or the server ends."""
        uris = params.notifications.resource_subscriptions or ()
        try:
            check_subscriptions([*uris])
        except ProtocolError as refusal:
            raise MCPError(refusal.code, refusal.message) from None
        over_http = ctx.request is not None
        try:
            with self._streams.opened(current(over_http=over_http, user=_USER)):
                return await self._listen(ctx, params, own_seconds_left() if over_http else None)
        except TooManyStreamsError as refusal:
            raise MCPError(types.INTERNAL_ERROR, refusal.message) from None

    async def _listen(
        self,
        ctx: ServerRequestContext[Any, Any],
        params: types.SubscriptionsListenRequestParams,
        seconds: float | None,
    ) -> types.SubscriptionsListenResult:
        stream = ListenHandler(self._bus)  # one for each, since it closes all of its streams or none
        ending = None if seconds is None else asyncio.get_running_loop().call_later(seconds, stream.close)
        self._open.add(stream)
        try:
            return await stream(ctx, params)
        finally:
            self._open.discard(stream)
            if ending is not None:
                ending.cancel()

    def end(self) -> None:
        """Answer each `subscriptions/listen`, since the server is going to end (MCP 2026-07-28, "Subscriptions")."""
        for stream in self._open:
            stream.close()

    async def greet(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Take note of a handshake, as a middleware, since from then on a client may keep what it reads."""
        result = await call_next(ctx)
        if ctx.method == "initialize":  # what the connection is known by is set when this is done, at once
            asyncio.get_running_loop().call_soon(self._greeted, ctx, self._changes.count)
        return result

    def _greeted(self, ctx: ServerRequestContext[Any, Any], changes: int) -> None:
        wants = self._of(ctx)
        wants.since = changes if wants.since is None else wants.since

    def level(self, ctx: ServerRequestContext[Any, Any]) -> LogLevel | None:
        """Return the least level that the caller wants; `None` if it wants no messages."""
        if Revision.of(ctx.protocol_version).has("stateless"):
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
        """Tell a connection of changes from `notifications/initialized` on, for as long as it lives.

        What changed between the handshake and that notification is told now; before it, nothing may be sent. Of several
        changes of one kind that it has not heard of yet, it hears once: it reads the list anew anyway.
        """
        wants = self._of(ctx)
        if wants.is_told:
            return
        wants.is_told = True
        since = self._changes.count if wants.since is None else wants.since
        waiting: dict[ServerEvent, None] = {
            _LISTS[kind]: None for kind, number in self._changes.last.items() if number > since
        }
        woken = anyio.Event()
        if waiting:
            woken.set()

        def hear(event: ServerEvent) -> None:
            if not isinstance(event, ResourceUpdated) or event.uri in wants.uris:
                waiting[event] = None
                woken.set()

        leave = self._bus.subscribe(hear)
        try:
            while True:
                await woken.wait()
                woken = anyio.Event()
                while waiting:
                    event = next(iter(waiting))
                    del waiting[event]
                    await ctx.session.send_notification(_notification(event))
        finally:
            leave()

    def _of(self, ctx: ServerRequestContext[Any, Any]) -> Wants:
        """Return what a connection wants, kept by its handshake, which lives as long and has no other public name."""
        connection = ctx.session.client_params
        if connection is None:
            return Wants()
        if id(connection) not in self._wants:
            self._wants[id(connection)] = Wants()
            weakref.finalize(connection, self._wants.pop, id(connection), None).atexit = False
        return self._wants[id(connection)]


def _notification(event: ServerEvent) -> types.ServerNotification:
    match event:
        case ToolsListChanged():
            return types.ToolListChangedNotification()
        case PromptsListChanged():
            return types.PromptListChangedNotification()
        case ResourcesListChanged():
            return types.ResourceListChangedNotification()
        case ResourceUpdated(uri=uri):
            params = types.ResourceUpdatedNotificationParams(uri=uri)
            return types.ResourceUpdatedNotification(params=params)
