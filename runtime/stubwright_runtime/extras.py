"""Imports optional packages from this distribution's extras."""

from __future__ import annotations

from types import TracebackType


class MissingExtraError(ImportError):
    """A package that the server requires is not installed."""


class Extra:
    """A context manager for imports from an extra.

    Raises:
        MissingExtraError: An imported module is not installed.
    """

    def __init__(self, extra: str, feature: str) -> None:
        """Set the names of the extra and of the feature that requires it, both for the error message."""
        self._extra = extra
        self._feature = feature

    def __enter__(self) -> None:
        pass

    def __exit__(self, _type: object, error: BaseException | None, _traceback: TracebackType | None) -> None:
        if isinstance(error, ModuleNotFoundError):
            words = f"{self._feature} requires the package {error.name}; install stubwright-runtime[{self._extra}]"
            raise MissingExtraError(words, name=error.name) from None
