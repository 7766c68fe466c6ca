"""What the handlers have run around each of their methods.

Takes the handlers object; gives its method `around`, where it has one. It runs within all that the manifest promises:
arguments are valid, a confirmation is given, and limits hold when it begins; results are checked when it has ended.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from ..core.context import Context

NAME: Final = "around"

Proceed: TypeAlias = Callable[[], Awaitable[Any]]
"""Runs what is left to run, which is the handler, and gives what it returns; what it raises comes out."""

Around: TypeAlias = Callable[["HandlerCall", Proceed], Awaitable[Any]]

Kind: TypeAlias = Literal["tool", "resource", "prompt", "completion"]


@dataclass(frozen=True, slots=True)
class HandlerCall:
    """One call of a method of the handlers, as `around` gets it.

    Attributes:
        kind: What it answers for: `tool`, `resource` (a resource, or one of a resource template), `prompt`, or
            `completion`.
        method: The method's name.
        args: The model of its arguments; `None` where the method takes none.
        ctx: The context that the method gets. `ctx.name` is the name of the tool or prompt, or the URI.
    """

    kind: Kind
    method: str
    args: Any
    ctx: Context


def find_around(handlers: object) -> Around | None:
    """Return the handlers' `around`; `None` if they have none. What only pretends to have each name has none."""
    return getattr(handlers, NAME) if hasattr(type(handlers), NAME) else None
