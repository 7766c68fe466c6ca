"""Requests that continue after their clients disconnect (MCP 2025-11-25 and earlier), and their memory limit.

The connection limit applies to all other requests.
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
"""The number of copies of the arguments in memory: the bytes, the parsed values and the model."""


class DetachedRequests:
    """The requests to one server that continue although their clients have disconnected."""

    def __init__(self, budget: Budget) -> None:
        """Create an empty set with a memory limit per caller and a limit in total, in bytes."""
        self._accounts = Accounts(budget)
        self._posts: dict[Post, tuple[Account, int]] = {}

    def admit(self, post: Post, owner: Account, body: int) -> bool:
        """Return whether a request may continue within the memory limits. If so, count its memory until `end`.

        Args:
            post: The request that lost its client.
            owner: The caller that is charged for the memory.
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
