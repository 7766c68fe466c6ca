"""The deadline for a call, from connecting to the response; suspended during prompts."""

from __future__ import annotations

import math
from contextlib import contextmanager
from inspect import isawaitable
from typing import TYPE_CHECKING, Any

import anyio

from stubwright.importers.limits import Progress

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterator

    from stubwright.importers.limits import Limits
    from stubwright_runtime.client.features.questions import OnQuestion, Question


class Clock:
    """The deadline for a call, which each phase resets.

    Attributes:
        starting: The time limit for connecting, in seconds.
        progress: The progress in reading the tool list.
    """

    def __init__(self, limits: Limits, seconds: float | None) -> None:
        """Set the deadline for connecting.

        Args:
            limits: The limits on connecting and listing, which apply if `seconds` is None.
            seconds: The time limit for the whole call.
        """
        self.starting = seconds or limits.starting or limits.seconds
        self.progress = Progress()
        self._limits, self._seconds = limits, seconds
        self._limit = self.starting
        self._scope = anyio.CancelScope()
        self._questions, self._left = 0, math.inf

    @contextmanager
    def enforce(self) -> Iterator[None]:
        """Cancel the block at the deadline. Raises TimeoutError."""
        with anyio.fail_after(self.starting) as self._scope:
            yield

    def start_listing(self) -> None:
        """Restart the deadline for listing after a command has started, unless one deadline covers the whole call."""
        if self._seconds is None and self._limits.starting is not None:
            self._limit = self._limits.seconds
            self._scope.deadline = anyio.current_time() + self._limit

    def start_calling(self) -> None:
        """Remove the deadline while waiting for the response, unless one deadline covers the whole call."""
        self.progress = Progress()
        if self._seconds is None:
            self._scope.deadline = math.inf

    def exclude(self, on_question: OnQuestion) -> Callable[[Question], Awaitable[Any]]:
        """Wrap a callback so that the deadline is suspended while the callback prompts."""

        async def ask(question: Question) -> Any:
            if not self._questions:
                self._left = self._scope.deadline - anyio.current_time()
                self._scope.deadline = math.inf
            self._questions += 1
            try:
                answer = on_question(question)
                return await answer if isawaitable(answer) else answer
            finally:
                self._questions -= 1
                if not self._questions:
                    self._scope.deadline = anyio.current_time() + self._left

        return ask

    def describe_overrun(self) -> str:
        """Return a phrase about the missed deadline, to append to the server's name."""
        return f"{self.progress.describe_overrun(self._limit)}; allow more time with --timeout"
