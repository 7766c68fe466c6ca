"""Schedules one process's tasks, round-robin over tools and over each tool's callers."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from typing import Final, TypeAlias

SLOTS: Final = 32
"""The maximum number of tasks that one process runs when other processes can run the rest."""

_Waiting: TypeAlias = dict[str, deque[asyncio.Future[bool]]]
"""One tool's waiting tasks by caller, in order of their turns."""


class Turns:
    """One process's slots and waiting tasks. The number of running tasks per tool is also limited."""

    def __init__(self, slots: float) -> None:
        """Create a scheduler with this many slots."""
        self._slots = slots
        self._running: Counter[str] = Counter()
        self._places: dict[str, float] = {}
        self._waiting: dict[str, _Waiting] = {}
        self._is_open = True

    def open(self) -> None:
        """Allow tasks to start, also after `close`."""
        self._is_open = True

    def close(self) -> None:
        """Stop starting tasks. Running tasks continue."""
        self._is_open = False
        for callers in self._waiting.values():
            for waiting in callers.values():
                for turn in waiting:
                    if not turn.done():
                        turn.set_result(False)
        self._waiting.clear()

    async def acquire(self, tool: str, caller: str, places: float) -> bool:
        """Wait for a slot for one task; `release` frees the slot.

        Args:
            tool: The tool's name.
            caller: The task's caller.
            places: The maximum number of the tool's tasks to run in this process.

        Returns:
            False after `close`.
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
                self.release(tool)
            raise

    def release(self, tool: str) -> None:
        """Free a task's slot."""
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
            # Requeue the caller and the tool at the end.
            if waiting:
                callers[caller] = waiting
            if callers:
                self._waiting[tool] = callers
            if not turn.done():  # the waiting task was not cancelled
                self._running[tool] += 1
                turn.set_result(True)
