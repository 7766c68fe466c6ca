"""Requests that have a moment to end, and move to a stream when it has ended."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .post import Post


class StreamTimer:
    """The requests of one server that still have a moment."""

    def __init__(self, seconds: float) -> None:
        """Take the length of a moment in seconds."""
        self._seconds = seconds
        self._ends: dict[Post, float] = {}
        self._timer: asyncio.TimerHandle | None = None

    def begin(self, post: Post) -> None:
        """Move a post to a stream in a moment, unless `end` is called before."""
        loop = asyncio.get_running_loop()
        self._ends[post] = loop.time() + self._seconds
        if self._timer is None:
            self._timer = loop.call_later(self._seconds, self._look)

    def end(self, post: Post) -> None:
        """Leave a post alone, since it has ended."""
        self._ends.pop(post, None)

    def _look(self) -> None:
        """Move those whose moment has ended, and come back for the others."""
        loop = asyncio.get_running_loop()
        now, self._timer = loop.time(), None
        for post, at in [*self._ends.items()]:  # in the order in which they end
            if at > now:
                self._timer = loop.call_at(at, self._look)
                return
            del self._ends[post]
            post.move()
