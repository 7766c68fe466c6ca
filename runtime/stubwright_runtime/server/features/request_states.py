"""Encrypts `requestState`, which clients store between the rounds of a request (MCP 2026-07-28).

The cipher is imported on first use.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

from ...mcp.errors import refuse_state
from ...observability.logs import log
from ...state.store import StateLost
from ...state.store_sealing import StoreSealing

if TYPE_CHECKING:
    from ...state.sealing import Call
    from ...state.store import Store
    from ..core.request import Request


class RequestStates:
    """Encrypts and decrypts one server's `requestState` values."""

    def __init__(self, store: Store, server: str, seconds: float) -> None:
        """Create the cipher of a server.

        Args:
            store: The store of the keys.
            server: The server's name, which encrypted values are bound to.
            seconds: How long an encrypted state is valid, in seconds.
        """
        self._sealing = StoreSealing(store, server, seconds, "request-state")

    async def open(self, token: object, request: Request) -> str:
        """Return the decrypted `requestState` of a request.

        Raises:
            ProtocolError: The state has expired, or was not issued to this caller for the same request.
            StateLost: The keys are unavailable.
        """
        sealing = await self._sealing.renew()
        if sealing is None:
            raise StateLost("cannot decrypt the requestState")
        from ...state.sealing import InvalidStateError

        try:
            return sealing.open(token, self._call(request), time.time())
        except InvalidStateError as error:
            log().warning("rejected a requestState for %s: %s", request.method, error)
            raise refuse_state() from None

    async def seal(self, state: str, request: Request) -> str:
        """Return a state, encrypted for the request's caller and parameters.

        Raises StateLost if the keys are unavailable.
        """
        sealing = self._sealing.known or await self._sealing.renew()
        if sealing is None:
            raise StateLost("cannot encrypt the requestState", is_unknown=True)  # the handler has already run
        return sealing.seal(state, self._call(request), time.time())

    def _call(self, request: Request) -> Call:
        from ...state.sealing import Call

        # Another client of the same user must not continue the call.
        return Call(request.method, request.params, request.principal.client_key)
