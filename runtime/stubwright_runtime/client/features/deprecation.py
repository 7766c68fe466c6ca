"""Warnings for deprecated methods that are called through descriptors, such as `client.tasks.old_tool`.

The method's own warning would point into this library, and Python hides `DeprecationWarning`s of libraries.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any, TypeVar

_Method = TypeVar("_Method", bound=Callable[..., Any])


def split_deprecated(method: _Method) -> tuple[_Method, str | None]:
    """Return a method without its deprecation warning, and the warning; `None` if it is not deprecated."""
    message: str | None = getattr(method, "__deprecated__", None)
    return (method if message is None else getattr(method, "__wrapped__", method)), message


def report_deprecated(message: str | None) -> None:
    """Warn the caller of the function that calls this one; `None` means no warning."""
    if message is not None:
        warnings.warn(message, DeprecationWarning, stacklevel=3)
