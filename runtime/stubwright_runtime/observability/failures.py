"""Stores exceptions from handlers, so that a client in the same process can raise them (`raise_errors`)."""

from __future__ import annotations

from typing import Final

_MOST: Final = 100
"""The maximum number of stored exceptions."""


class Failures:
    """Exceptions by the reference in their error response; empty until `keep` is called."""

    def __init__(self) -> None:
        self._by_reference: dict[str, BaseException] | None = None

    def keep(self) -> None:
        """Start storing exceptions."""
        if self._by_reference is None:
            self._by_reference = {}

    def add(self, reference: str, error: BaseException) -> None:
        """Store an exception if `keep` was called."""
        kept = self._by_reference
        if kept is None:
            return
        kept[reference] = error
        if len(kept) > _MOST:
            del kept[next(iter(kept))]

    def __bool__(self) -> bool:
        return bool(self._by_reference)

    def pop(self, answer: str) -> BaseException | None:
        """Remove and return the exception to which an error response refers, or `None`."""
        kept = self._by_reference or {}
        match = next((reference for reference in kept if reference in answer), None)
        return None if match is None else kept.pop(match)
