"""The method `around` of handlers, which runs around each of their other methods.

When it begins, arguments are valid, a confirmation is given, and limits hold; when it has ended, results are checked.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from ..features.context import Context

NAME: Final = "around"

Proceed: TypeAlias = Callable[[], Awaitable[Any]]
"""Runs the handler, and returns its result or raises its exception."""

Around: TypeAlias = Callable[["HandlerCall", Proceed], Awaitable[Any]]

Kind: TypeAlias = Literal["tool", "resource", "prompt", "completion"]


@dataclass(frozen=True, slots=True)
class HandlerCall:
    """One call of a method of the handlers, for `around`.

    Attributes:
        kind: The kind of entry: `tool`, `resource` (a resource, or one of a resource template), `prompt`, or
            `completion`.
        method: The method's name.
        args: The model of its arguments; `None` if the method takes none.
        ctx: The context that the method gets. `ctx.name` is the name of the tool or prompt, or the URI.
    """

    kind: Kind
    method: str
    args: Any
    ctx: Context


def find_around(handlers: object) -> Around | None:
    """Return the handlers' `around`; `None` if there are none. One made by `__getattr__` does not count."""
    return getattr(handlers, NAME) if hasattr(type(handlers), NAME) else None
