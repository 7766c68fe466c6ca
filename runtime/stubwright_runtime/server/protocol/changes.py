"""Pending changes for one client, and their notifications. Several pending changes of one kind cause one notification,
since the client reads the whole list again (MCP 2025-11-25,
server/tools, "List Changed Notification").
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from .client_subscriptions import Change

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .client_subscriptions import ChangeLog, ClientSubscriptions
    from .outgoing import Notifier


class ChangeNotifier:
    """The notifications of changes for one client, on its connection or on one stream."""

    def __init__(
        self, is_wanted: Callable[[Change], bool], outgoing: Notifier, meta: Mapping[str, Any] | None = None
    ) -> None:
        """Start without pending changes.

        Args:
            is_wanted: Returns whether the client subscribes to a change.
            outgoing: The messages to the client.
            meta: The `_meta` of each notification, if it has one.
        """
        self._is_wanted = is_wanted
        self._outgoing = outgoing
        self._about: Mapping[str, Any] = {} if meta is None else {"_meta": meta}
        self._waiting: dict[Change, None] = {}
        self._woken = asyncio.Event()
        self._is_over = False

    def on_change(self, change: Change) -> None:
        """Queue a change, if the client subscribes to it."""
        if self._is_wanted(change):
            self._waiting[change] = None
            self._woken.set()

    def end(self) -> None:
        """Send the changes that wait, and none after them."""
        self._is_over = True
        self._woken.set()

    @classmethod
    def join_handshake(cls, wants: ClientSubscriptions, changes: ChangeLog, outgoing: Notifier) -> ChangeNotifier:
        """Return the notifications for a connection up to 2025-11-25, from its handshake on.

        Args:
            wants: The wants of its client.
            changes: The log of changes.
            outgoing: The messages to the client.
        """
        telling = cls(lambda change: change.uri is None or change.uri in wants.uris, outgoing)
        since = changes.count if wants.since is None else wants.since
        for kind, number in changes.last.items():
            if number > since:
                telling.on_change(Change(kind))
        return telling

    async def run(self) -> None:
        """Tell the client of changes until the end. If this is cancelled, the rest waits for the next run."""
        while True:
            while self._waiting:
                change = next(iter(self._waiting))
                del self._waiting[change]
                try:
                    await self._notify(change)
                except asyncio.CancelledError:
                    self._waiting[change] = None
                    raise
            if self._is_over:
                return
            self._woken.clear()
            await self._woken.wait()

    async def _notify(self, change: Change) -> None:
        name = f"{change.kind}/list_changed" if change.uri is None else "resources/updated"
        params = self._about if change.uri is None else {"uri": change.uri, **self._about}
        await self._outgoing.notify(f"notifications/{name}", params or None)
