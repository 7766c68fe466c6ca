"""Whether a handlers object has what its tools need, told before the server starts.

Takes the tools and the object; raises one `Unfit`, a `TypeError`, that names all that is missing, with stubs to
paste. It calls no handler and imports no model.
"""

from __future__ import annotations

import inspect
from types import FunctionType, MethodType
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable

    from .tools import Tool, Tools

_PASSED: Final = 2  # args and ctx


class Unfit(TypeError):  # noqa: N818 - what the object is
    """A handlers object lacks methods, or has what cannot be called for a tool; the message lists them all."""


def check(tools: Tools, handlers: object) -> None:
    """Check that there is a method for each tool, which takes `args` and `ctx`.

    Raises:
        Unfit: There is not.
    """
    name = tools.manifest["server"]["name"]
    if isinstance(handlers, type):
        raise Unfit(f"{handlers.__name__} is a class; the server {name!r} needs an object: {handlers.__name__}()")
    missing: list[Tool] = []
    wrong: list[str] = []
    for tool in tools.values():
        method = getattr(handlers, tool.method, None)
        if method is None:
            missing.append(tool)
        elif not callable(method):
            wrong.append(f"{tool.method} is {type(method).__name__}, not a method")
        elif not _takes_both(method):
            wrong.append(f"{tool.method}{inspect.signature(method)} is called with (args, ctx)")
    parts = []
    if missing:
        parts.append(_missing(f"{type(handlers).__name__} lacks", missing))
    if wrong:
        lines = "".join(f"\n    {line}" for line in wrong)
        parts.append(f"{type(handlers).__name__} has what cannot be called for a tool:{lines}")
    if parts:
        raise Unfit("\n\n".join(parts))


def abstract(tools: Tools, handlers: type) -> str | None:
    """Why `handlers` cannot be instantiated, where its methods are missing; else `None`."""
    lacking: frozenset[str] = getattr(handlers, "__abstractmethods__", frozenset())
    missing = [tool for tool in tools.values() if tool.method in lacking]
    return _missing(f"{handlers.__name__} lacks", missing) if missing else None


def stub(tool: Tool) -> str:
    """The method that a tool needs, to be pasted into the handlers' class."""
    returns = "Content" if tool.output_name is None else tool.output_name
    return (
        f"    async def {tool.method}(self, args: {tool.input_name}, ctx: Context) -> {returns}:\n"
        "        raise NotImplementedError"
    )


def _missing(who: str, tools: Iterable[Tool]) -> str:
    stubs = [stub(tool) for tool in tools]
    count = "a method" if len(stubs) == 1 else f"{len(stubs)} methods"
    return "\n\n".join([f"{who} {count}. To paste:", *stubs])


def _takes_both(method: Callable[..., object]) -> bool:
    """Whether the method takes two positional arguments and needs no others."""
    function = method.__func__ if isinstance(method, MethodType) else None
    if isinstance(function, FunctionType):  # a thousand signatures would be felt at start
        code = function.__code__
        if code.co_argcount == 1 + _PASSED and code.co_kwonlyargcount == 0:
            return True
    try:
        signature = inspect.signature(method)
    except ValueError:
        return True  # built-in code without a signature: only a call can tell
    try:
        signature.bind(*[None] * _PASSED)
    except TypeError:
        return False
    return True
