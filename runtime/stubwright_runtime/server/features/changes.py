"""Changes of a server's lists and resources, told to the clients of all its processes.

Entries that are off are retained there, too, so that they stay off in a process that starts later.
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
    """The changes of one server."""

    def __init__(self, store: Store, lists: Lists, tell: Publish) -> None:
        """Take the store, the lists of this process, and the function that tells its clients."""
        self._store = store
        self._lists = lists
        self._notify = tell
        store.listen(_TOPIC, self._hear)

    async def publish(self, change: Change) -> None:
        """Tell the clients of all processes. Raises StateLost."""
        await self._store.publish(_TOPIC, json.dumps([change.kind, change.uri]).encode())

    async def switch(self, kind: Kind, key: str, *, on: bool) -> bool:
        """Switch an entry on or off in all processes; return whether that changed its state. Raises StateLost."""
        is_new = await self._store.switch(_name(kind), key, on=not on)
        await self._refresh(kind)
        return is_new

    async def _hear(self, data: bytes | None) -> None:
        if data is None:  # changes may have been missed, so clients read all lists again
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
                listing.leave_out(off)


def _name(kind: Kind) -> str:
    return f"off:{kind}"
