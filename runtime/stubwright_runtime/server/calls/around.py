"""Handlers' `around` method, which wraps every call to another handler method.

`around` runs after validation, limits and confirmation, and before the result is validated.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from ..features.context import Context

NAME: Final = "around"

Proceed: TypeAlias = Callable[[], Awaitable[Any]]
"""Runs the wrapped handler method, and returns its result or raises its exception."""

Around: TypeAlias = Callable[["HandlerCall", Proceed], Awaitable[Any]]

Kind: TypeAlias = Literal["tool", "resource", "prompt", "completion"]


@dataclass(frozen=True, slots=True)
class HandlerCall:
    """One call to a handler method, the first argument of `around`.

    Attributes:
        kind: `tool`, `resource` (also for resource templates), `prompt` or `completion`.
        method: The name of the handler method.
        args: The arguments as a generated model; `None` if the method has no arguments.
        ctx: The call's context. `ctx.name` is the name of the tool or prompt, or the resource's URI.
    """

    kind: Kind
    method: str
    args: Any
    ctx: Context


def find_around(handlers: object) -> Around | None:
    """Return the handlers' `around` method if their class defines it. Attributes from `__getattr__` do not count."""
    return getattr(handlers, NAME) if hasattr(type(handlers), NAME) else None
