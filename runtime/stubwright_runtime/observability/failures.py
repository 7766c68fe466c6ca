"""Stores handlers' exceptions for a client in the same process (`raise_errors`)."""

from __future__ import annotations

from typing import Final

_MOST: Final = 100
"""The maximum number of stored exceptions."""


class Failures:
    """Stored exceptions, keyed by reference; empty until `keep` is called."""

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
        """Remove and return the exception that a response refers to, or `None`."""
        kept = self._by_reference or {}
        match = next((reference for reference in kept if reference in answer), None)
        return None if match is None else kept.pop(match)
