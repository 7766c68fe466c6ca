"""The encryption of what clients keep for the server between the rounds of a call (MCP 2026-07-28, `requestState`).

Takes messages; the SDK encrypts and decrypts, with a key that all processes with the same store have, so that the next
round may come to any of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp_types.methods import INPUT_REQUIRED_METHODS, is_input_required

from ...sdk.server import RequestStateBoundary, RequestStateSecurity
from ...state.store import StateLost

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ...sdk.requests import CallNext, HandlerResult, ServerRequestContext
    from ...state.store import Store


class EncryptedRequestState:
    """A middleware that encrypts and decrypts `requestState`."""

    def __init__(self, store: Store, audience: str, seconds: float) -> None:
        """Take where the keys are, the server's name, and how long a state holds."""
        self._store = store
        self._audience = audience
        self._seconds = seconds
        self._keys: Sequence[bytes] = ()
        self._boundary: RequestStateBoundary | None = None

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Have a request answered by a server that sees the plain state."""
        if ctx.method not in INPUT_REQUIRED_METHODS:
            return await call_next(ctx)
        if self._boundary is None or "requestState" in (ctx.params or {}):
            await self._renew()
        if self._boundary is not None:
            return await self._boundary(ctx, call_next)
        if "requestState" in (ctx.params or {}):
            raise StateLost("the requestState cannot be decrypted")
        result = await call_next(ctx)
        if is_input_required(result):
            raise StateLost("the requestState cannot be encrypted", is_unknown=True)
        return result

    async def _renew(self) -> None:
        """Take the keys that hold now; while the store is lost, those that are known."""
        try:
            keys = await self._store.secrets()
        except StateLost:
            return
        if keys != self._keys:
            self._keys = keys
            security = RequestStateSecurity(keys=keys, ttl=self._seconds)
            self._boundary = RequestStateBoundary(security, default_audience=self._audience)
