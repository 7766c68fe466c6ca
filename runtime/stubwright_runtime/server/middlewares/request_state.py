"""Encryption of `requestState`, which clients hold between the rounds of a call (MCP 2026-07-28).

The cipher is imported on first use.
"""

from __future__ import annotations

import json
import time
from typing import TYPE_CHECKING, Any, Final

from ...mcp.errors import refuse_state
from ...observability.logs import log
from ...state.store import StateLost
from ...state.store_sealing import StoreSealing
from ..core.principal import find_current

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...state.sealing import Call
    from ...state.store import Store
    from ..core.principal import Principal
    from ..core.request import Answer, Request, Result

_METHODS: Final = frozenset({"prompts/get", "resources/read", "tools/call"})
"""The methods that may ask questions (MCP 2026-07-28, basic/patterns, "Multi Round-Trip Requests")."""


class EncryptedRequestState:
    """A middleware that encrypts and decrypts `requestState`."""

    def __init__(self, store: Store, server: str, seconds: float, user: Principal) -> None:
        """Create the middleware.

        Args:
            store: The store of the keys.
            server: The name of the server.
            seconds: The lifetime of a state.
            user: The local user.
        """
        self._sealing = StoreSealing(store, server, seconds, "request-state")
        self._user = user

    def wrap(self, method: str, call_next: Answer) -> Answer:
        """Decrypt the state of each request, and encrypt the state in its result."""
        if method not in _METHODS:
            return call_next

        async def call(request: Request) -> Result:
            sent = request.params
            if (token := sent.get("requestState")) is not None:
                request.params = {**sent, "requestState": await self._open(token, request, sent)}
            result = await call_next(request)
            if result is None or result.get("resultType") != "input_required":
                return result
            if (state := result.get("requestState")) is None:  # questions may come without one
                return result
            return {**result, "requestState": await self._seal(state, request, sent)}

        return call

    async def _open(self, token: object, request: Request, sent: Mapping[str, Any]) -> str:
        """Decrypt the state of a request.

        Raises:
            ProtocolError: The state was not issued to this caller for this call, or has expired.
            StateLost: The keys are unavailable.
        """
        sealing = await self._sealing.renew()
        if sealing is None:
            raise StateLost("the requestState cannot be decrypted")
        from ...state.sealing import InvalidStateError

        try:
            return sealing.open(token, self._call(request, sent), time.time())
        except InvalidStateError as error:
            log().warning("requestState rejected on %s: %s", request.method, error)
            raise refuse_state() from None

    async def _seal(self, state: str, request: Request, sent: Mapping[str, Any]) -> str:
        """Encrypt a state. Raises StateLost if the keys are unavailable."""
        sealing = self._sealing.known or await self._sealing.renew()
        if sealing is None:
            raise StateLost("the requestState cannot be encrypted", is_unknown=True)  # the handler has run
        return sealing.seal(state, self._call(request, sent), time.time())

    def _call(self, request: Request, sent: Mapping[str, Any]) -> Call:
        from ...state.sealing import Call

        caller = find_current(over_http=request.over_http, user=self._user)
        # Another client of the same user must not continue the call.
        return Call(request.method, sent, json.dumps([caller.key, caller.client]))
