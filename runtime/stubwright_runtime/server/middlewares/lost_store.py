"""Maps store outages to the same error for every method."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...mcp.errors import INTERNAL_ERROR, ProtocolError
from ...state.outages import WaitBudget
from ...state.store import describe_lost_state, find_state_lost
from ..core.call_state import record_status
from ..core.outcomes import refuse

if TYPE_CHECKING:
    from ..core.hub import Hub
    from ..core.request import Answer, Request, Result


def explain_lost_store(hub: Hub, call_next: Answer) -> Answer:
    """Return a function that responds with an error if the store is unavailable.

    All of a request's waits for the store share one deadline. The error for a tool call is a result, like other
    refusals.
    """
    has_deadline = hub.store.is_shared

    async def call(request: Request) -> Result:
        if has_deadline:
            request.waits = WaitBudget()
        try:
            return await call_next(request)
        except Exception as error:
            if (loss := find_state_lost(error)) is None:
                raise
            text = describe_lost_state(is_unknown=loss.is_unknown)
        record_status("limited", "state_lost")
        if request.method == "tools/call":
            return refuse(text, "limited", "state_lost").result
        raise ProtocolError(INTERNAL_ERROR, text)

    return call
