"""Limits calls' rates with a sliding window per principal and tool. The limits apply before arguments are validated."""

from __future__ import annotations

import hashlib
import json
from functools import lru_cache
from typing import TYPE_CHECKING

from ..observability.logs import log
from ..server.core.outcomes import refuse
from ..state.store import StateLost, describe_lost_state
from ..values.units import describe_wait, parse_rate
from .shared_windows import SharedWindows
from .windows import Windows

if TYPE_CHECKING:
    from ..package import Tool
    from ..server.core.outcomes import Outcome
    from ..server.core.request import Handle, Request
    from ..state.store import Store


class Rates:
    """The rate limits on the tools of one server.

    Attributes:
        uncounted: The number of calls admitted while the store was unavailable (`onStateLoss: open`).
    """

    def __init__(self, store: Store) -> None:
        """Count calls in `store` if processes share it, otherwise in memory."""
        self._windows = Windows() if store.pool is None else SharedWindows(store)
        self.uncounted = 0

    def wrap(self, tool: Tool, call_next: Handle) -> Handle:
        """Wrap a tool's handler to count calls and reject those above the rate limit."""
        policy = tool.policy
        rate: str | None = policy.get("rateLimit")
        if rate is None:
            return call_next
        limit, seconds = parse_rate(rate)
        number = "once" if limit == 1 else f"{limit:,} times"
        unit = rate.partition("/")[2]
        window = "an hour" if unit == "hour" else f"a {unit}"
        text = f"{tool.name} may be called {number} in {window}; the limit is reached."
        is_open = policy.get("onStateLoss") == "open"

        async def call(request: Request) -> Outcome:
            if request.is_answer:  # a later round of a call that was already counted
                return await call_next(request)
            try:
                wait = await self._windows.hit(_hash(tool.name, rate, request.principal.key), limit, seconds)
            except StateLost:
                if not is_open:
                    return refuse(describe_lost_state(is_unknown=False), "limited", "state_lost")
                self._record_uncounted()
                return await call_next(request)
            if not wait:
                return await call_next(request)
            return refuse(f"{text} Try again in {describe_wait(wait)}.", "limited", "rate_limit")

        return call

    def _record_uncounted(self) -> None:
        """Count a call that was admitted while the store was unavailable (`onStateLoss: open`), and log the count."""
        self.uncounted += 1
        if self.uncounted & (self.uncounted - 1) == 0:  # a power of two: first, second, fourth …
            text = "admitting calls without rate limits while the store is unavailable: %d so far (`onStateLoss: open`)"
            log().warning(text, self.uncounted)


@lru_cache(4096)
def _hash(tool: str, rate: str, principal: str) -> str:
    return hashlib.sha256(json.dumps([tool, rate, principal]).encode()).hexdigest()
