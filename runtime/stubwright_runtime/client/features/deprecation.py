"""Deprecated methods that are called through an object of ours, such as `client.tasks.old_tool`.

Its warning would name our line, which calls the function for the caller, and Python shows users no `DeprecationWarning`
of a library; so the objects warn themselves.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

_Method = TypeVar("_Method", bound=Callable[..., Any])


def split_deprecated(method: _Method) -> tuple[_Method, str | None]:
    """Return a method that does not warn, and its warning; `None` if it is not deprecated."""
    message: str | None = getattr(method, "__deprecated__", None)
    return (method if message is None else getattr(method, "__wrapped__", method)), message


def report_deprecated(message: str | None) -> None:
    """Warn the caller of the function that calls this one; `None` means no warning."""
    if message is not None:
        warnings.warn(message, DeprecationWarning, stacklevel=3)
