"""A sealing with the keys of a store, which may change while a server runs.

While the store is lost, the known keys stay in use. The library that encrypts is loaded on first use.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .store import StateLost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .sealing import StateSealer
    from .store import Store


class StoreSealing:
    """Seals for one purpose with the keys of a store."""

    def __init__(self, store: Store, server: str, seconds: float, purpose: str) -> None:
        """Take the store of the keys, the server's name, the lifetime of a token in seconds, and the purpose."""
        self._store = store
        self._server = server
        self._seconds = seconds
        self._purpose = purpose
        self._keys: Sequence[bytes] = ()
        self.known: StateSealer | None = None

    async def renew(self) -> StateSealer | None:
        """Return the sealing with the keys that hold now, or that were known last; `None` if none are known."""
        from .sealing import StateSealer

        try:
            keys = await self._store.list_secrets()
        except StateLost:
            return self.known
        if keys != self._keys:
            self.known = StateSealer(keys, self._server, self._seconds, self._purpose)
            self._keys = keys
        return self.known
