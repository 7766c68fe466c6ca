# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""What connections of the handshake era want to hear, and the ways in which all clients hear of changes.

Takes the SDK's requests and notifications; keeps, as long as a connection lives, the log level and the resources that
it asked for. From 2026-07-28 there are no connections: each request says what it wants, and changes go to
`subscriptions/listen`.
"""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final

import anyio
import mcp_types as types
from mcp.server.subscriptions import (
    InMemorySubscriptionBus,
    ListenHandler,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    ServerEvent,
    ToolsListChanged,
)
from mcp.shared.exceptions import MCPError

from ..revisions import FIRST_STATELESS
from .context import LOG_LEVELS, LogLevel
from .lists import Change, Kind

if TYPE_CHECKING:
    from mcp.server.context import ServerRequestContext


_SUBSCRIPTIONS: Final = 1000
"""How many resources one connection may subscribe to."""

_CHARACTERS: Final = 256 * 1024
"""How long their URIs may be together."""

_LISTS: Final[Mapping[Kind, ServerEvent]] = {
    "tools": ToolsListChanged(),
    "prompts": PromptsListChanged(),
    "resources": ResourcesListChanged(),
}


@dataclass(slots=True)
class _Wants:
    level: LogLevel = "info"
    uris: set[str] = field(default_factory=set[str])
    is_told: bool = False


class Subscriptions:
    """The connections of one server."""

    def __init__(self) -> None:
        """Start with none."""
        self._bus = InMemorySubscriptionBus()
        self._wants: dict[int, _Wants] = {}
        self.listen = ListenHandler(self._bus)

    async def publish(self, change: Change) -> None:
        """Tell all clients of a change that they want to hear of."""
        await self._bus.publish(_LISTS[change.kind] if change.uri is None else ResourceUpdated(uri=change.uri))

    def level(self, ctx: ServerRequestContext[Any, Any]) -> LogLevel | None:
        """The least level that the caller wants; `None` where it wants no messages."""
        if ctx.protocol_version >= FIRST_STATELESS:
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

    async def subscribe(
        self, ctx: ServerRequestContext[Any, Any], params: types.SubscribeRequestParams
    ) -> types.EmptyResult:
        """Answer `resources/subscribe` (MCP 2025-11-25, server/resources, "Subscriptions")."""
        uris = self._of(ctx).uris
        if len(uris) >= _SUBSCRIPTIONS:
            raise MCPError(types.INVALID_PARAMS, f"More than {_SUBSCRIPTIONS} subscriptions")
        if sum(map(len, uris)) + len(params.uri) > _CHARACTERS:
            raise MCPError(types.INVALID_PARAMS, f"Subscriptions to URIs of more than {_CHARACTERS} characters")
        uris.add(str(params.uri))
        return types.EmptyResult()

    async def unsubscribe(
        self, ctx: ServerRequestContext[Any, Any], params: types.UnsubscribeRequestParams
    ) -> types.EmptyResult:
        """Answer `resources/unsubscribe`."""
        self._of(ctx).uris.discard(str(params.uri))
        return types.EmptyResult()

    async def tell(self, ctx: ServerRequestContext[Any, Any], _params: types.NotificationParams) -> None:
        """Tell a connection of changes from `notifications/initialized` on, for as long as it lives.

        Of several changes of one kind that it has not heard of yet, it hears once: it reads the list anew anyway.
        """
        wants = self._of(ctx)
        if wants.is_told:
            return
        wants.is_told = True
        waiting: dict[ServerEvent, None] = {}
        woken = anyio.Event()

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

    def _of(self, ctx: ServerRequestContext[Any, Any]) -> _Wants:
        """What a connection wants, kept by its handshake, which lives as long and has no other public name."""
        connection = ctx.session.client_params
        if connection is None:
            return _Wants()
        if id(connection) not in self._wants:
            self._wants[id(connection)] = _Wants()
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
