"""A sealing with the keys of a store, which may change while a server runs.

Takes the store; gives the sealing that all processes with the same store have. While the store is lost, the keys that
are known hold on. What encrypts is loaded when there is something to encrypt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from .store import StateLost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .sealing import Sealing
    from .store import Store


class StoreSealing:
    """Seals for one purpose with the keys of a store."""

    def __init__(self, store: Store, server: str, seconds: float, purpose: str) -> None:
        """Take where the keys are, the server's name, how long a token holds, and what is sealed."""
        self._store = store
        self._server = server
        self._seconds = seconds
        self._purpose = purpose
        self._keys: Sequence[bytes] = ()
        self.known: Sealing | None = None

    async def renew(self) -> Sealing | None:
        """Return the sealing with the keys that hold now, or that were known last; `None` if none are known."""
        from .sealing import Sealing

        try:
            keys = await self._store.secrets()
        except StateLost:
            return self.known
        if keys != self._keys:
            self.known = Sealing(keys, self._server, self._seconds, self._purpose)
            self._keys = keys
        return self.known
