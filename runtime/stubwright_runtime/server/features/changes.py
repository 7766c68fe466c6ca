"""Publishes changes to lists and resources to the clients of all processes, through the store.

The store also contains which entries are hidden, so that processes that start later hide them.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from ..protocol.client_subscriptions import Change

if TYPE_CHECKING:
    from ...state.store import Store
    from ..core.lists import Lists
    from ..protocol.client_subscriptions import Kind, Publish

_TOPIC: Final = "changes"


class Changes:
    """Publishes one server's changes to lists and resources."""

    def __init__(self, store: Store, lists: Lists, notify: Publish) -> None:
        """Listen for changes in the store; `notify` forwards them to this process's clients."""
        self._store = store
        self._lists = lists
        self._notify = notify
        store.listen(_TOPIC, self._on_message)

    async def publish(self, change: Change) -> None:
        """Notify the clients of all processes. Raises StateLost."""
        await self._store.publish(_TOPIC, json.dumps([change.kind, change.uri]).encode())

    async def switch(self, kind: Kind, key: str, *, on: bool) -> bool:
        """Show or hide an entry in all processes, and return whether its visibility changed. Raises StateLost."""
        is_new = await self._store.switch(_name(kind), key, on=not on)
        await self._refresh(kind)
        return is_new

    async def _on_message(self, data: bytes | None) -> None:
        if data is None:  # the store was unavailable and changes may be lost
            for kind in self._lists.kinds:
                await self._refresh(kind)
                await self._notify(Change(kind))
            return
        kind, uri = json.loads(data)
        if uri is None:
            await self._refresh(kind)
        await self._notify(Change(kind, uri))

    async def _refresh(self, kind: Kind) -> None:
        off = await self._store.list_members(_name(kind))
        for listing in self._lists.by_name.values():
            if listing.kind == kind:
                listing.set_hidden(off)


def _name(kind: Kind) -> str:
    return f"off:{kind}"
