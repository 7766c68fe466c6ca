"""The encryption of the state that clients hold between the rounds of a call (MCP 2026-07-28, `requestState`).

The cipher is loaded when there is a state to encrypt.
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
"""The methods that may answer with a question (MCP 2026-07-28, basic/patterns, "Multi Round-Trip Requests")."""


class EncryptedRequestState:
    """A middleware that encrypts and decrypts `requestState`."""

    def __init__(self, store: Store, server: str, seconds: float, user: Principal) -> None:
        """Take the store of the keys, the server's name, the lifetime of a state in seconds, and the local user."""
        self._sealing = StoreSealing(store, server, seconds, "request-state")
        self._user = user

    def wrap(self, method: str, call_next: Answer) -> Answer:
        """Pass the decrypted state of a method's requests to the server."""
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
        """Return the state that came with a request.

        Raises:
            ProtocolError: It was not issued to this caller for this call, or has expired.
            StateLost: The keys are unknown.
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
        """Return the token for a state. Raises StateLost if the keys are not known."""
        sealing = self._sealing.known or await self._sealing.renew()
        if sealing is None:
            raise StateLost("the requestState cannot be encrypted", is_unknown=True)  # the handler has run
        return sealing.seal(state, self._call(request, sent), time.time())

    def _call(self, request: Request, sent: Mapping[str, Any]) -> Call:
        from ...state.sealing import Call

        caller = find_current(over_http=request.over_http, user=self._user)
        # A user's other client is not meant to go on with a call, although it is the same principal.
        return Call(request.method, sent, json.dumps([caller.key, caller.client]))
