"""Checks before startup, without importing models, that the handlers define the required methods."""

from __future__ import annotations

import inspect
from types import FunctionType, MethodType
from typing import TYPE_CHECKING

from ..calls.around import NAME, find_around

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from ..core.feature import HandlerMethod


class NoHandlers:
    """The handlers of a server that requires no handler methods."""


class HandlersError(TypeError):
    """Handlers lack methods, or their methods have the wrong signature; the message lists every such method."""


def check(server: str, needed: Sequence[HandlerMethod], handlers: object) -> None:
    """Check that each required method exists and accepts its arguments.

    Args:
        server: The server's name, for messages.
        needed: The methods to look for.
        handlers: The object whose methods are checked.

    Raises:
        HandlersError: A method is missing or does not accept its arguments.
    """
    if isinstance(handlers, type):
        raise HandlersError(
            f"{handlers.__name__} is a class; server {server!r} needs an instance: {handlers.__name__}()"
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
        elif not _accepts(method, len(entry.parameters)):
            names = ", ".join(parameter.partition(":")[0] for parameter in entry.parameters)
            wrong.append(f"{entry.name}{inspect.signature(method)} must accept the arguments ({names})")
    if (around := find_around(handlers)) is not None and not _is_around(around):
        wrong.append(f"{NAME} must be `async def {NAME}(self, call, proceed)`")
    parts: list[str] = []
    if wrong:
        lines = "".join(f"\n    {line}" for line in wrong)
        parts.append(f"{type(handlers).__name__} has methods with the wrong signature:{lines}")
    if missing:
        parts.append(_list_stubs(f"{type(handlers).__name__} lacks", missing))
    if parts:
        raise HandlersError("\n\n".join(parts))


def explain_abstract(needed: Sequence[HandlerMethod], handlers: type) -> str | None:
    """Return an error message if a handlers class is abstract because it lacks required methods, otherwise `None`."""
    lacking: frozenset[str] = getattr(handlers, "__abstractmethods__", frozenset())
    missing = [entry for entry in needed if entry.name in lacking]
    return _list_stubs(f"{handlers.__name__} lacks", missing) if missing else None


def _list_stubs(who: str, needed: Sequence[HandlerMethod]) -> str:
    count = "a method. Add it" if len(needed) == 1 else f"{len(needed)} methods. Add them"
    return "\n\n".join([f"{who} {count}:", *(entry.stub for entry in needed)])


def _is_around(method: Callable[..., object]) -> bool:
    return inspect.iscoroutinefunction(method) and _accepts(method, 2)


def _accepts(method: Callable[..., object], count: int) -> bool:
    function = method.__func__ if isinstance(method, MethodType) else None
    if isinstance(function, FunctionType):  # fast path: inspecting a thousand signatures would delay startup
        code = function.__code__
        if code.co_argcount == 1 + count and code.co_kwonlyargcount == 0:
            return True
    try:
        signature = inspect.signature(method)
    except ValueError:
        return True  # built-in functions may have no signature
    try:
        signature.bind(*[None] * count)
    except TypeError:
        return False
    return True
