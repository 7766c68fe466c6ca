"""The requests that a server is answering, so that those that a stop cuts off are told so.

Takes the messages of all connections; ends the requests under way with a JSON-RPC error when it is asked to.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR

from ..core.call_state import note

if TYPE_CHECKING:
    from ...sdk.requests import CallNext, HandlerResult, ServerRequestContext

LISTENING: Final = "subscriptions/listen"
"""The method whose requests are answered only when they end (MCP 2026-07-28)."""

_STOPPED: Final = (
    "The server stopped before it could answer. The request may have taken effect; check before you send it again."
)


class InFlight:
    """A middleware of the server that can end the requests it passes on."""

    def __init__(self) -> None:
        """No request is under way."""
        self._scopes: set[anyio.CancelScope] = set()

    def end(self) -> None:
        """Answer each request under way with an error; what listens ends by itself."""
        for scope in [*self._scopes]:
            scope.cancel()

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Pass a message on."""
        if ctx.request_id is None or ctx.method == LISTENING:
            return await call_next(ctx)
        with anyio.CancelScope() as scope:
            self._scopes.add(scope)
            try:
                return await call_next(ctx)
            finally:
                self._scopes.discard(scope)
        note("cancelled", "cancelled")
        raise MCPError(INTERNAL_ERROR, _STOPPED)
