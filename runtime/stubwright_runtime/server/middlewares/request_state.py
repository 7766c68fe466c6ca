"""The encryption of what clients keep for the server between the rounds of a call (MCP 2026-07-28, `requestState`).

Takes messages; the SDK encrypts and decrypts, with a key that all processes with the same store have, so that the next
round may come to any of them. It is loaded when there is something to encrypt.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

from ...mcp.errors import ProtocolError
from ...state.store import StateLost

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping, Sequence

    from ...sdk.server import RequestStateBoundary
    from ...state.store import Store
    from ..core.exchange import Exchange, Rest, Result

_METHODS: Final = frozenset({"prompts/get", "resources/read", "tools/call"})
"""What a client may be asked back by (MCP 2026-07-28, basic/patterns, "Multi Round-Trip Requests")."""


@dataclass(frozen=True, slots=True)
class _Round:
    """A request as the SDK looks at it here."""

    method: str
    params: Mapping[str, Any] | None


class EncryptedRequestState:
    """A middleware that encrypts and decrypts `requestState`."""

    def __init__(self, store: Store, audience: str, seconds: float) -> None:
        """Take where the keys are, the server's name, and how long a state holds."""
        self._store = store
        self._audience = audience
        self._seconds = seconds
        self._keys: Sequence[bytes] = ()
        self._boundary: RequestStateBoundary | None = None

    async def __call__(self, rest: Rest, exchange: Exchange) -> Result:
        """Have a request answered by a server that sees the plain state."""
        if exchange.method not in _METHODS:
            return await rest(exchange)
        if "requestState" in (exchange.params or {}):
            await self._renew()
            if self._boundary is None:
                raise StateLost("the requestState cannot be decrypted")
            return await self._pass(exchange, lambda params: rest(exchange.with_params(params)))
        result = await rest(exchange)
        if result is None or result.get("resultType") != "input_required":
            return result
        if self._boundary is None:
            await self._renew()
        if self._boundary is None:
            raise StateLost("the requestState cannot be encrypted", is_unknown=True)
        return await self._pass(exchange, lambda _params: _given(result))

    async def _pass(self, exchange: Exchange, answer: Callable[[Mapping[str, Any]], Awaitable[Result]]) -> Result:
        """Return what `answer` gives, between the SDK's decryption and its encryption."""
        from mcp.shared.exceptions import MCPError

        async def call_next(decrypted: Any) -> Any:
            return await answer(decrypted.params)

        boundary: Any = self._boundary
        try:
            result: Result = await boundary(_Round(exchange.method, exchange.params), call_next)
        except MCPError as error:
            raise ProtocolError(error.error.code, error.error.message, error.error.data) from None
        return result

    async def _renew(self) -> None:
        """Take the keys that hold now; while the store is lost, those that are known."""
        from ...sdk.server import RequestStateBoundary, RequestStateSecurity

        try:
            keys = await self._store.secrets()
        except StateLost:
            return
        if keys != self._keys:
            self._keys = keys
            security = RequestStateSecurity(keys=keys, ttl=self._seconds)
            self._boundary = RequestStateBoundary(security, default_audience=self._audience)


async def _given(result: Result) -> Result:
    return result
