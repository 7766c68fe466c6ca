"""The questions of a task: without an answer they end the run, and the task goes on when the answers exist.

It is the way of 2026-07-28, whatever the client speaks.
"""

from __future__ import annotations

import hashlib
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any

from ..server.features.input_requests import InputRequests

if TYPE_CHECKING:
    from ..server.core.request import Request
    from .records import Task


class TaskInputRequests(InputRequests):
    """The questions of one task."""

    def __init__(
        self,
        task: Task,
        request: Request,
        save: Callable[[Mapping[str, Any]], Awaitable[None]],
    ) -> None:
        """Go on from where the task was left; `save` keeps what `ctx.once` gave."""
        state = {"answers": task.answers, "done": task.done, "tries": task.tries, "asked": ()}
        super().__init__(request, state)
        self._task = task
        self._save = save
        self._visits = 0

    @property
    def in_handshake_era(self) -> bool:
        """No question is a request in the middle of the run."""
        return False

    async def name_url_question(self, elicitation: str | None = None) -> str | None:
        """Return the id of a question that opens a URL: the same in each run, since the handler begins again."""
        if self.revision.has("stateless"):
            return None
        self._visits += 1
        return elicitation or hashlib.sha256(f"{self._task.id} {self._visits}".encode()).hexdigest()[:32]

    def _get_seed(self) -> str:
        return self._task.origin or self._task.id  # a run that dies stores no seed

    async def save(self) -> None:
        """Store the value immediately, so that a later run after a crash does not make it again."""
        await self._save(dict(self._done))
