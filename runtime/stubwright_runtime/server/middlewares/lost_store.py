"""The error for callers while the store cannot be reached: one text for all methods.

Takes messages; passes them on, with one deadline for all waits of a message for the store.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...mcp.errors import INTERNAL_ERROR, ProtocolError
from ...state.outages import share_deadline
from ...state.store import describe_lost_state, find_state_lost
from ..core.call_state import note
from ..core.outcomes import refuse

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..core.exchange import Exchange, Rest, Result


class LostStore:
    """A middleware around everything that may need the store."""

    def __init__(self, stamp: Callable[[dict[str, Any], str], dict[str, Any]]) -> None:
        """Take the function that stamps a result as one of this server, for a revision."""
        self._stamp = stamp

    async def __call__(self, rest: Rest, exchange: Exchange) -> Result:
        """Pass a message on; a call that fails for loss of the store has an error result, as with other refusals."""
        with share_deadline():
            try:
                return await rest(exchange)
            except Exception as error:
                if (loss := find_state_lost(error)) is None:
                    raise
                text = describe_lost_state(is_unknown=loss.is_unknown)
        note("limited", "state_lost")
        if exchange.method == "tools/call":
            return self._stamp(refuse(text, "limited", "state_lost").result, exchange.revision)
        raise ProtocolError(INTERNAL_ERROR, text)
