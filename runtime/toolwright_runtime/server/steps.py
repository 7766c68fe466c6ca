"""What a call goes through on the way to its tool and back: its limits, its record.

Takes a call and the rest of the way; gives the outcome, its own or that of the rest.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from ..package import Tool
    from .context import Context
    from .outcomes import Outcome
    from .principal import Principal


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool that is there.

    Attributes:
        tool: The tool.
        arguments: What the caller sent; absent arguments are an empty object.
        size: The bytes of these as JSON; `None` where they are no JSON.
        context: What the handler gets as `ctx`.
        is_answer: Whether it goes on with a call that asked something, from 2026-07-28 on.
        is_run: Whether it is the run of a task, whose call has been let through.
        begin: Makes a task of the call in place of running the handler.
    """

    tool: Tool
    arguments: dict[str, Any]
    size: int | None
    context: Context
    is_answer: bool = False
    is_run: bool = False
    begin: Proceed | None = None

    @property
    def principal(self) -> Principal:
        """Who calls."""
        return self.context.principal


Proceed: TypeAlias = Callable[[Call], Awaitable["Outcome"]]
"""The rest of the way."""

Step: TypeAlias = Callable[[Proceed, Call], Awaitable["Outcome"]]


def chained(steps: Sequence[Step], last: Proceed) -> Proceed:
    """The whole way, the first step first."""
    for step in reversed(steps):
        last = partial(step, last)
    return last
