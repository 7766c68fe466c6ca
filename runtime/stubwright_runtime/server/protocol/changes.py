"""Notifies one client of changes; several pending changes to a list cause one notification (MCP 2025-11-25,
server/tools, "List Changed Notification").
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

from .client_subscriptions import Change

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from .client_subscriptions import ChangeLog, ClientSubscriptions
    from .sender import Notifier


class ChangeNotifier:
    """Notifies one client of changes, on its connection or on one stream."""

    def __init__(
        self, is_wanted: Callable[[Change], bool], outgoing: Notifier, meta: Mapping[str, Any] | None = None
    ) -> None:
        """Create a notifier that has no pending changes.

        Args:
            is_wanted: Returns whether the client has subscribed to a change.
            outgoing: Sends notifications to the client.
            meta: The `_meta` to send with each notification, if any.
        """
        self._is_wanted = is_wanted
        self._outgoing = outgoing
        self._about: Mapping[str, Any] = {} if meta is None else {"_meta": meta}
        self._waiting: dict[Change, None] = {}
        self._woken = asyncio.Event()
        self._has_ended = False

    def on_change(self, change: Change) -> None:
        """Queue a notification if the client has subscribed to the change."""
        if self._is_wanted(change):
            self._waiting[change] = None
            self._woken.set()

    def end(self) -> None:
        """Send the pending changes, then stop."""
        self._has_ended = True
        self._woken.set()

    @classmethod
    def join_handshake(
        cls, subscriptions: ClientSubscriptions, changes: ChangeLog, outgoing: Notifier
    ) -> ChangeNotifier:
        """Return a handshake connection's notifier, which first reports the changes since the handshake (MCP 2025-11-25
        and earlier).

        Args:
            subscriptions: The connection's subscriptions.
            changes: The log of changes.
            outgoing: Sends notifications to the client.
        """
        notifier = cls(lambda change: change.uri is None or change.uri in subscriptions.uris, outgoing)
        since = changes.count if subscriptions.since is None else subscriptions.since
        for kind, number in changes.last.items():
            if number > since:
                notifier.on_change(Change(kind))
        return notifier

    async def run(self) -> None:
        """Send notifications until `end` is called. If cancelled, pending changes remain queued for the next run."""
        while True:
            while self._waiting:
                change = next(iter(self._waiting))
                del self._waiting[change]
                try:
                    await self._notify(change)
                except asyncio.CancelledError:
                    self._waiting[change] = None
                    raise
            if self._has_ended:
                return
            self._woken.clear()
            await self._woken.wait()

    async def _notify(self, change: Change) -> None:
        name = f"{change.kind}/list_changed" if change.uri is None else "resources/updated"
        params = self._about if change.uri is None else {"uri": change.uri, **self._about}
        await self._outgoing.notify(f"notifications/{name}", params or None)
