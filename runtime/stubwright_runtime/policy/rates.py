"""Rate limits of tools: a moving window for each principal and tool.

Takes calls; lets them through, or refuses them with a result that says when to try again (MCP 2025-11-25, server/tools,
"Security Considerations": servers MUST rate limit tool invocations). A refused call has not been validated.
"""

from __future__ import annotations

import hashlib
import json
from typing import TYPE_CHECKING

from ..observability.logs import log
from ..server.core.outcomes import Outcome, refuse
from ..state.store import StateLost, describe_lost_state
from ..values.units import describe_wait, parse_rate
from .shared_windows import SharedWindows
from .windows import Windows

if TYPE_CHECKING:
    from ..server.core.steps import Call, Proceed
    from ..state.store import Store


class Rates:
    """The rates of one server's tools: a step that their calls go through.

    Attributes:
        uncounted: Calls that were let through while the store was lost (`onStateLoss: open`).
    """

    def __init__(self, store: Store) -> None:
        """Take the store in which calls are counted."""
        self._windows = Windows() if store.pool is None else SharedWindows(store)
        self.uncounted = 0

    async def __call__(self, proceed: Proceed, call: Call) -> Outcome:
        """Let a call through, and count it; a further round of a call has been counted already."""
        rate = call.tool.policy.get("rateLimit")
        if rate is None or call.is_answer:
            return await proceed(call)
        limit, seconds = parse_rate(rate)
        key = hashlib.sha256(json.dumps([call.tool.name, rate, call.principal.key]).encode()).hexdigest()
        try:
            wait = await self._windows.hit(key, limit, seconds)
        except StateLost:
            return await self._unknown(proceed, call)
        if not wait:
            return await proceed(call)
        number = "once" if limit == 1 else f"{limit:,} times"
        unit = rate.partition("/")[2]
        window = "an hour" if unit == "hour" else f"a {unit}"
        text = f"{call.tool.name} may be called {number} in {window}, and has been."
        return refuse(f"{text} Try again in {describe_wait(wait)}.", "limited", "rate_limit")

    async def _unknown(self, proceed: Proceed, call: Call) -> Outcome:
        """Decide about a call while the count is unknown, by the manifest's `onStateLoss`."""
        if call.tool.policy.get("onStateLoss") != "open":
            return refuse(describe_lost_state(is_unknown=False), "limited", "state_lost")
        self.uncounted += 1
        if self.uncounted & (self.uncounted - 1) == 0:  # the first, the second, the fourth …
            text = "calls go uncounted without the state; %d let through so far (`onStateLoss: open`)"
            log().warning(text, self.uncounted)
        return await proceed(call)
