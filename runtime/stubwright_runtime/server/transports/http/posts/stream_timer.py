"""Switches slow responses to event streams."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .post import Post


class StreamTimer:
    """One timer for all of a server's requests that may still get a plain response."""

    def __init__(self, seconds: float) -> None:
        """Create a timer with a delay in seconds."""
        self._seconds = seconds
        self._ends: dict[Post, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, post: Post) -> None:
        """Switch a request to a stream after the delay, unless `end` is called first."""
        loop = asyncio.get_running_loop()
        self._ends[post] = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._switch_due)

    def end(self, post: Post) -> None:
        """Forget a finished request."""
        self._ends.pop(post, None)

    def _switch_due(self) -> None:
        loop = asyncio.get_running_loop()
        now, self._timer = loop.time(), None
        for post, at in [*self._ends.items()]:  # ordered by deadline
            if at > now:
                self._timer = loop.call_at(at, self._switch_due)
                return
            del self._ends[post]
            post.switch_to_stream()
