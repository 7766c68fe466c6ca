"""A context variable that has a value for the length of a block.

A generator with `contextlib.contextmanager` says the same in three times the time; each message passes some of these.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Generic, TypeVar

if TYPE_CHECKING:
    from contextvars import ContextVar, Token

_T = TypeVar("_T")


class ContextValue(Generic[_T]):
    """The block."""

    __slots__ = ("_token", "_value", "_variable")

    def __init__(self, variable: ContextVar[_T], value: _T) -> None:
        """Take the variable, and the value that it has in the block."""
        self._variable = variable
        self._value = value

    def __enter__(self) -> None:
        """Set it."""
        self._token: Token[_T] = self._variable.set(self._value)

    def __exit__(self, *exception: object) -> None:
        """Give it back what it had."""
        self._variable.reset(self._token)
