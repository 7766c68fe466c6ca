"""The order in which the tasks of one process begin: tools in turn, and for each tool its callers in turn."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from typing import Final, TypeAlias

SLOTS: Final = 32
"""The most tasks that one process runs if other processes can run the rest."""

_Waiting: TypeAlias = dict[str, deque[asyncio.Future[bool]]]
"""The waiting tasks of one tool by their callers, who are in the order of their turns."""


class Turns:
    """The slots of one process, and the tasks that wait for one.

    A task waits without a slot while its tool runs as many tasks as it may.
    """

    def __init__(self, slots: float) -> None:
        """Start without tasks; `slots` is the most that run."""
        self._slots = slots
        self._running: Counter[str] = Counter()
        self._places: dict[str, float] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._is_open = True

    def open(self) -> None:
        """Begin tasks, also after `close`."""
        self._is_open = True

    def close(self) -> None:
        """Begin no more tasks; running tasks continue."""
        self._is_open = False
        for callers in self._waiting.values():
            for waiting in callers.values():
                for turn in waiting:
                    if not turn.done():
                        turn.set_result(False)
        self._waiting.clear()

    async def take(self, tool: str, caller: str, places: float) -> bool:
        """Wait for the turn of a task, which then has a slot until `leave`.

        Args:
            tool: The name of its tool.
            caller: Whose task it is.
            places: The most tasks of the tool that run in this process.

        Returns:
            False if no more tasks begin.
        """
        if not self._is_open:
            return False
        self._places[tool] = places
        turn: asyncio.Future[bool] = asyncio.get_running_loop().create_future()
        self._waiting.setdefault(tool, {}).setdefault(caller, deque()).append(turn)
        self._grant()
        try:
            return await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.result():
                self.leave(tool)
            raise

    def leave(self, tool: str) -> None:
        """Free the slot of a task."""
        self._running[tool] -= 1
        self._grant()

    def _grant(self) -> None:
        while self._running.total() < self._slots:
            tool = next((name for name in self._waiting if self._running[name] < self._places[name]), None)
            if tool is None:
                return
            callers = self._waiting.pop(tool)
            caller, waiting = next(iter(callers.items()))
            del callers[caller]
            turn = waiting.popleft()
            # At the end of the line of callers, and of tools.
            if waiting:
                callers[caller] = waiting
            if callers:
                self._waiting[tool] = callers
            if not turn.done():  # a cancelled one
                self._running[tool] += 1
                turn.set_result(True)
