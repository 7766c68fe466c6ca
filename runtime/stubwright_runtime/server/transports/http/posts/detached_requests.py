"""Requests that continue after their clients disconnect (MCP 2025-11-25 and earlier), and their memory limit.

All other requests are limited by the number of connections.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .accounts import Accounts

if TYPE_CHECKING:
    from .....state.budget import Budget
    from .accounts import Account
    from .post import Post

_EACH: Final = 16 * 1024
"""The approximate memory overhead of a request's tasks and stream, in bytes."""

_COPIES: Final = 3
"""The number of copies of the arguments in memory: bytes, parsed values and a model."""


class DetachedRequests:
    """One server's detached requests."""

    def __init__(self, budget: Budget) -> None:
        """Create an empty set with memory limits per caller and in total."""
        self._accounts = Accounts(budget)
        self._posts: dict[Post, tuple[Account, int]] = {}

    def admit(self, post: Post, owner: Account, body: int) -> bool:
        """Return whether a request may continue without its client; if so, count it until it finishes.

        Args:
            post: The request.
            owner: The caller.
            body: The message size in bytes.
        """
        if post not in self._posts:
            size = _EACH + _COPIES * body
            if not self._accounts.has_room(owner, size):
                return False
            self._posts[post] = owner, size
            self._accounts.add(owner, size)
        return True

    def end(self, post: Post) -> None:
        """Stop counting a finished request."""
        if post in self._posts:
            self._accounts.remove(*self._posts.pop(post))
