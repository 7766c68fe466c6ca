"""The check, before a server starts, that its handlers object has the methods that it needs.

It calls no handler and imports no model.
"""

from __future__ import annotations

import inspect
from types import FunctionType, MethodType
from typing import TYPE_CHECKING

from ..calls.around import NAME, find_around

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.feature import HandlerMethod


class NoHandlers:
    """The handlers of a server that does not need any."""


class HandlersError(TypeError):
    """A handlers object lacks methods, or has some that cannot be called; the message lists them all."""


def check(server: str, needed: Sequence[HandlerMethod], handlers: object) -> None:
    """Check that each needed method exists, and accepts the arguments that it will be called with.

    Args:
        server: The server's name.
        needed: The methods.
        handlers: The object.

    Raises:
        HandlersError: One does not.
    """
    if isinstance(handlers, type):
        raise HandlersError(
            f"{handlers.__name__} is a class; the server {server!r} needs an instance: {handlers.__name__}()"
        )
    missing: list[HandlerMethod] = []
    wrong: list[str] = []
    for entry in needed:
        method = getattr(handlers, entry.name, None)
        if method is None:
            if not entry.is_optional:
                missing.append(entry)
        elif not callable(method):
            wrong.append(f"{entry.name} is {type(method).__name__}, not a method")
        elif not _takes(method, len(entry.parameters)):
            names = ", ".join(parameter.partition(":")[0] for parameter in entry.parameters)
            wrong.append(f"{entry.name}{inspect.signature(method)} is called with ({names})")
    if (around := find_around(handlers)) is not None and not _is_around(around):
        wrong.append(f"{NAME} is not `async def {NAME}(self, call, proceed)`")
    parts: list[str] = []
    if wrong:
        lines = "".join(f"\n    {line}" for line in wrong)
        parts.append(f"{type(handlers).__name__} has methods that cannot be called as the server does:{lines}")
    if missing:
        parts.append(_list_stubs(f"{type(handlers).__name__} lacks", missing))
    if parts:
        raise HandlersError("\n\n".join(parts))


def explain_abstract(needed: Sequence[HandlerMethod], handlers: type) -> str | None:
    """Return the reason that `handlers` cannot be instantiated if methods are missing; otherwise `None`."""
    lacking: frozenset[str] = getattr(handlers, "__abstractmethods__", frozenset())
    missing = [entry for entry in needed if entry.name in lacking]
    return _list_stubs(f"{handlers.__name__} lacks", missing) if missing else None


def _list_stubs(who: str, needed: Sequence[HandlerMethod]) -> str:
    count = "a method. Add it" if len(needed) == 1 else f"{len(needed)} methods. Add them"
    return "\n\n".join([f"{who} {count}:", *(entry.stub for entry in needed)])


def _is_around(method: Callable[..., object]) -> bool:
    return inspect.iscoroutinefunction(method) and _takes(method, 2)


def _takes(method: Callable[..., object], count: int) -> bool:
    """Return whether the method takes so many positional arguments and needs no others."""
    function = method.__func__ if isinstance(method, MethodType) else None
    if isinstance(function, FunctionType):  # a thousand signatures would be felt at start
        code = function.__code__
        if code.co_argcount == 1 + count and code.co_kwonlyargcount == 0:
            return True
    try:
        signature = inspect.signature(method)
    except ValueError:
        return True  # built-in code without a signature: only a call can tell
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True
