"""Exceptions of handlers, for a client in the same process that wants them raised there."""

from __future__ import annotations

from typing import Final

_MOST: Final = 100
"""The most exceptions that are retained until they are asked for."""


class Failures:
    """The kept exceptions; there are none before `keep`."""

    def __init__(self) -> None:
        """Keep nothing."""
        self._by_reference: dict[str, BaseException] | None = None

    def keep(self) -> None:
        """Keep exceptions from now on."""
        if self._by_reference is None:
            self._by_reference = {}

    def add(self, reference: str, error: BaseException) -> None:
        """Keep an exception, where that is wanted."""
        kept = self._by_reference
        if kept is None:
            return
        kept[reference] = error
        if len(kept) > _MOST:
            del kept[next(iter(kept))]

    def __bool__(self) -> bool:
        return bool(self._by_reference)

    def pop(self, answer: str) -> BaseException | None:
        """Remove and return the exception that an answer refers to; `None` if there is none."""
        kept = self._by_reference or {}
        match = next((reference for reference in kept if reference in answer), None)
        return None if match is None else kept.pop(match)
