"""What callers are told while the store cannot be reached: one message, whatever they asked for.

Takes requests; passes them on, under one deadline for all that they wait for the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR

from ...state.outages import one_deadline
from ...state.store import describe_lost_state, find_state_lost
from .call_state import note
from .outcomes import refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from ...sdk.requests import CallNext, HandlerResult, ServerRequestContext


class LostStore:
    """A middleware of the SDK, around all that may need the store."""

    def __init__(self, stamp: Callable[[dict[str, Any], str], dict[str, Any]]) -> None:
        """Take what makes a result one of this server, in a revision."""
        self._stamped = stamp

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Pass a message on; what the loss of the store ends of a call is a result, as any other refusal."""
        with one_deadline():
            try:
                return await call_next(ctx)
            except Exception as error:
                if (loss := find_state_lost(error)) is None:
                    raise
                text = describe_lost_state(is_unknown=loss.is_unknown)
        note("limited", "state_lost")
        if ctx.method == "tools/call":
            return self._stamped(refusal(text, "limited", "state_lost").result, ctx.protocol_version)
        raise MCPError(INTERNAL_ERROR, text)
