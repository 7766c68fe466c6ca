"""The engine of tasks: in this process, or in any of those that share a store.

Takes ids of tasks; has the work done for each. An engine does not know tasks, and keeps only their ids.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from typing import Protocol, TypeAlias

Work: TypeAlias = Callable[[str], Awaitable[bool]]
"""Does what is to be done for a task, by its id; gives whether that is done.

Else somebody else is at it, and it is to be looked at again later. It may be called at any time, and several times for
a task. Raises StateLost.
"""


class Engine(Protocol):
    """Has tasks worked at.

    Attributes:
        grace: Seconds that tasks under way may go on when a stay ends; then they are cancelled.
    """

    grace: float

    async def submit(self, task: str) -> None:
        """Have a task worked at; when this returns, that is not lost. Raises StateLost."""
        ...

    def stop(self) -> None:
        """Begin no more tasks, since the stay is going to end; those under way go on."""
        ...

    def run(self, work: Work) -> AbstractAsyncContextManager[None]:
        """Work on tasks during the block; it may be entered again after its end."""
        ...
