"""What the client on standard input hears of changes, up to 2025-11-25 (server/tools, "List Changed Notification").

Takes changes as they come; tells those that the client wants to hear of, each kind once as long as it waits: a client
reads the list anew anyway. From 2026-07-28 on, clients listen by a request.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeAlias

from ...core.lists import Change

if TYPE_CHECKING:
    from ...protocol.outgoing import Outgoing
    from ...protocol.wants import ChangeLog, Wants

_Notice: TypeAlias = "tuple[str, str | None]"
"""A notification: its method, and the URI of a resource."""


class Notices:
    """The notifications of one connection."""

    def __init__(self, wants: Wants, changes: ChangeLog, outgoing: Outgoing) -> None:
        """Take what the client wants to hear, what changed until now, and the messages to it."""
        self._wants = wants
        self._changes = changes
        self._outgoing = outgoing
        self._waiting: dict[_Notice, None] = {}
        self._telling: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Tell of changes from now on, and of those since the handshake: before this nothing may be sent."""
        if self._wants.is_told:
            return
        self._wants.is_told = True
        since = self._changes.count if self._wants.since is None else self._wants.since
        for kind, number in self._changes.last.items():
            if number > since:
                self.hear(Change(kind))

    def hear(self, change: Change) -> None:
        """Tell of a change, if the client wants to hear of it."""
        if not self._wants.is_told or (change.uri is not None and change.uri not in self._wants.uris):
            return
        name = f"{change.kind}/list_changed" if change.uri is None else "resources/updated"
        self._waiting[f"notifications/{name}", change.uri] = None
        if self._telling is None:
            self._telling = asyncio.create_task(self._tell())

    def close(self) -> None:
        """Tell nothing more."""
        self._wants.is_told = False
        if self._telling is not None:
            self._telling.cancel()

    async def _tell(self) -> None:
        while self._waiting:
            notice = method, uri = next(iter(self._waiting))
            del self._waiting[notice]
            params: dict[str, Any] | None = None if uri is None else {"uri": uri}
            await self._outgoing.notify(method, params)
        self._telling = None
