"""The extras of this distribution: packages that only some servers need."""

from __future__ import annotations

from types import TracebackType


class MissingExtraError(ImportError):
    """A package that the server needs is not installed."""


class Extra:
    """A block that imports modules of an extra.

    Raises:
        MissingExtraError: One of the modules is not installed.
    """

    def __init__(self, extra: str, feature: str) -> None:
        """Take the name of the extra, and what needs it, as messages call it."""
        self._extra = extra
        self._feature = feature

    def __enter__(self) -> None:
        pass

    def __exit__(self, _type: object, error: BaseException | None, _traceback: TracebackType | None) -> None:
        if isinstance(error, ModuleNotFoundError):
            words = f"{self._feature} needs the package {error.name}; install stubwright-runtime[{self._extra}]"
            raise MissingExtraError(words, name=error.name) from None
