"""Warnings for deprecated methods that are called through descriptors, such as `client.tasks.old_tool`.

The method's own warning would point into this library, and Python hides `DeprecationWarning`s from libraries.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import wraps
from inspect import iscoroutinefunction
from typing import Any, TypeVar

_Method = TypeVar("_Method", bound=Callable[..., Any])


def split_deprecated(method: _Method) -> tuple[_Method, str | None]:
    """Return a method without its deprecation warning, and that warning's text (`None` if there is no warning)."""
    message: str | None = getattr(method, "__deprecated__", None)
    return (method if message is None else getattr(method, "__wrapped__", method)), message


def report_deprecated(message: str | None) -> None:
    """Issue a deprecation warning that points to the caller of the calling function, unless `message` is `None`."""
    if message is not None:
        warnings.warn(message, DeprecationWarning, stacklevel=3)


def make_deprecated_awaitable(client: type) -> None:
    """Mark a client's deprecated methods as coroutine functions, which `deprecated` hides before Python 3.12.

    Agent frameworks do not await the results of other functions.
    """
    for name, method in [*vars(client).items()]:
        plain, message = split_deprecated(method)
        if message is not None and iscoroutinefunction(plain) and not iscoroutinefunction(method):
            setattr(client, name, _make_coroutine_function(plain, message))


def _make_coroutine_function(method: Callable[..., Any], message: str) -> Callable[..., Any]:
    @wraps(method)
    async def call(*args: Any, **kwargs: Any) -> Any:
        report_deprecated(message)
        return await method(*args, **kwargs)

    return call
