"""What callers are told while the store cannot be reached: one message, whatever they asked for.

Takes messages; passes them on, under one deadline for all that they wait for the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...mcp.errors import INTERNAL_ERROR, ProtocolError
from ...state.outages import one_deadline
from ...state.store import describe_lost_state, find_state_lost
from ..core.call_state import note
from ..core.outcomes import refusal

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.exchange import Exchange, Rest, Result


class LostStore:
    """A middleware around all that may need the store."""

    def __init__(self, stamp: Callable[[dict[str, Any], str], dict[str, Any]]) -> None:
        """Take what makes a result one of this server, in a revision."""
        self._stamped = stamp

    async def __call__(self, rest: Rest, exchange: Exchange) -> Result:
        """Pass a message on; what the loss of the store ends of a call is a result, as any other refusal."""
        with one_deadline():
            try:
                return await rest(exchange)
            except Exception as error:
                if (loss := find_state_lost(error)) is None:
                    raise
                text = describe_lost_state(is_unknown=loss.is_unknown)
        note("limited", "state_lost")
        if exchange.method == "tools/call":
            return self._stamped(refusal(text, "limited", "state_lost").result, exchange.revision)
        raise ProtocolError(INTERNAL_ERROR, text)
