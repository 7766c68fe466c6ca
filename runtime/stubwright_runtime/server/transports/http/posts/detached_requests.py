"""The requests that go on without their clients, up to 2025-11-25, and the limit on the memory that they take.

Connections bound all others.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from .accounts import Accounts

if TYPE_CHECKING:
    from .....state.budget import Budget
    from .accounts import Account
    from .post import Post

_EACH: Final = 16 * 1024
"""The approximate number of bytes that a request takes next to its arguments: its tasks and its stream."""

_COPIES: Final = 3
"""Copies of the arguments in memory: bytes, parsed values and a model."""


class DetachedRequests:
    """The requests of one server that go on without their clients."""

    def __init__(self, budget: Budget) -> None:
        """Take the limits on their bytes, of one caller and in all."""
        self._accounts = Accounts(budget)
        self._posts: dict[Post, tuple[Account, int]] = {}

    def admit(self, post: Post, owner: Account, body: int) -> bool:
        """Return whether a request may go on without its client; if so, count it until it ends.

        Args:
            post: The request.
            owner: Its caller.
            body: The bytes of its message.
        """
        if post not in self._posts:
            size = _EACH + _COPIES * body
            if not self._accounts.has_room(owner, size):
                return False
            self._posts[post] = owner, size
            self._accounts.add(owner, size)
        return True

    def end(self, post: Post) -> None:
        """Note that a request has ended."""
        if post in self._posts:
            self._accounts.remove(*self._posts.pop(post))
