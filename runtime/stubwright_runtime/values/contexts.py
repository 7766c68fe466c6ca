"""A context manager that sets a context variable, three times faster than `contextlib.contextmanager`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from contextvars import ContextVar, Token

_T = TypeVar("_T")


class ContextValue(Generic[_T]):
    """Sets a context variable during a block."""

    __slots__ = ("_token", "_value", "_variable")

    def __init__(self, variable: ContextVar[_T], value: _T) -> None:
        """Store the variable, and its value inside the block."""
        self._variable = variable
        self._value = value

    def __enter__(self) -> None:
        """Set the variable."""
        self._token: Token[_T] = self._variable.set(self._value)

    def __exit__(self, *exception: object) -> None:
        """Restore the previous value."""
        self._variable.reset(self._token)
