"""What one call takes up while it runs: its time and its place among the calls that may run at once.

Takes a keeper, where a limit holds for the call; without one, nothing is taken up. Whoever waits for a person says so,
and so does a thread that nobody can stop.
"""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable


class Keeper(Protocol):
    """What keeps the limits of one call."""

    def resting(self) -> AbstractAsyncContextManager[None]:
        """The length of a wait for a person, in which neither the clock runs nor the place is taken."""
        ...

    def hold(self) -> Callable[[], None]:
        """Keep the place until what this gives is called, which any thread may do."""
        ...


class Occupancy:
    """What one call takes up.

    Attributes:
        keeper: Keeps the limits of the call, where there are any.
    """

    def __init__(self) -> None:
        """Nothing so far."""
        self.keeper: Keeper | None = None

    def resting(self) -> AbstractAsyncContextManager[None]:
        """The length of a wait for a person."""
        return nullcontext() if self.keeper is None else self.keeper.resting()

    def hold(self) -> Callable[[], None]:
        """Keep the place until what this gives is called."""
        return _nothing if self.keeper is None else self.keeper.hold()


def _nothing() -> None:
    """What ends where nothing began."""
