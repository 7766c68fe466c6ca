"""Seals with a store's keys, which can change at run time; during an outage, the last known keys are used."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .store import StateLost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from .sealing import StateSealer
    from .store import Store


class StoreSealing:
    """Seals state for one purpose with a store's keys."""

    def __init__(self, store: Store, server: str, seconds: float, purpose: str) -> None:
        """Create a sealer for one server and purpose; `seconds` is the lifetime of its tokens."""
        self._store = store
        self._server = server
        self._seconds = seconds
        self._purpose = purpose
        self._keys: Sequence[bytes] = ()
        self.known: StateSealer | None = None

    async def renew(self) -> StateSealer | None:
        """Return the sealer with the current or last known keys, or `None` if no keys are known."""
        from .sealing import StateSealer

        try:
            keys = await self._store.list_secrets()
        except StateLost:
            return self.known
        if keys != self._keys:
            self.known = StateSealer(keys, self._server, self._seconds, self._purpose)
            self._keys = keys
        return self.known
