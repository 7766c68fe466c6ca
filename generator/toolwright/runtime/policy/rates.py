"""How often a tool may be called: a moving window for each principal and tool.

Takes calls; lets them through, or refuses them with a result that says when to try again (MCP 2025-11-25, server/tools,
"Security Considerations": servers MUST rate limit tool invocations). What is refused has not been validated.
"""

from __future__ import annotations

import json
import math
import time
from typing import TYPE_CHECKING

from limits import RateLimitItem, parse
from limits.aio.strategies import MovingWindowRateLimiter

from ..server.outcomes import Outcome, refusal
from .windows import Windows

if TYPE_CHECKING:
    from limits.aio.storage import Storage

    from ..package import Tool
    from ..server.steps import Call, Proceed


class Rates:
    """The rates of one server's tools: a step that their calls go through."""

    def __init__(self, storage: Storage | None = None) -> None:
        """Say where calls are counted; by default in the memory of this process."""
        self._counter = MovingWindowRateLimiter(Windows() if storage is None else storage)
        self._limits: dict[Tool, RateLimitItem | None] = {}

    async def __call__(self, proceed: Proceed, call: Call) -> Outcome:
        """Let a call through, and count it; one that goes on with what it began has been counted."""
        if call.tool not in self._limits:
            rate = call.tool.policy.get("rateLimit")
            self._limits[call.tool] = parse(rate) if rate else None
        limit = self._limits[call.tool]
        if limit is None or call.is_answer:
            return await proceed(call)
        key = json.dumps([call.tool.name, call.principal.key])
        if await self._counter.hit(limit, key):
            return await proceed(call)
        reset = (await self._counter.get_window_stats(limit, key)).reset_time
        wait = max(1, math.ceil(reset - time.time()))
        number = "once" if limit.amount == 1 else f"{limit.amount:,} times"
        window = "an hour" if limit.GRANULARITY.name == "hour" else f"a {limit.GRANULARITY.name}"
        text = f"{call.tool.name} may be called {number} in {window}; this call is one too many."
        seconds = "1 second" if wait == 1 else f"{wait:,} seconds"
        return refusal(f"{text} Try again in {seconds}.", "limited", "rate_limit")
