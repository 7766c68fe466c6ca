"""A task's questions, in all revisions: an unanswered question ends the run, and the answer starts another."""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..server.features.input_requests import InputRequests

if TYPE_CHECKING:
    from ..server.core.request import Request
    from .records import Task


class TaskInputRequests(InputRequests):
    """One task's questions."""

    def __init__(
        self,
        task: Task,
        request: Request,
        save: Callable[[Mapping[str, Any]], Awaitable[None]],
    ) -> None:
        """Restore the answers and `ctx.once` values from earlier runs; `save` stores new `ctx.once` values."""
        state = {"answers": task.answers, "done": task.done, "tries": task.tries, "asked": ()}
        super().__init__(request, state)
        self._task = task
        self._save = save
        self._visits = 0

    @property
    def in_handshake_era(self) -> bool:
        """False, because a task's questions are never sent as requests during a run."""
        return False

    async def name_url_question(self, elicitation: str | None = None) -> str | None:
        """Return a URL elicitation's ID, which is the same in each run, because each run restarts the handler."""
        if self.revision.has("stateless"):
            return None
        self._visits += 1
        return elicitation or hashlib.sha256(f"{self._task.id} {self._visits}".encode()).hexdigest()[:32]

    def _get_seed(self) -> str:
        return self._task.origin or self._task.id  # a seed would be lost if the run's process died

    async def save(self) -> None:
        """Store the values immediately, so that a run after a crash does not compute them again."""
        await self._save(dict(self._done))
