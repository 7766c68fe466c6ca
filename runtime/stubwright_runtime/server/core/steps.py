"""The steps of a call on the way to its tool and back, such as its limits.

Takes a call and the rest of the chain; gives the outcome, its own or that of the rest.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from ...values import units
from .outcomes import Outcome, refuse

if TYPE_CHECKING:
    from ...package import Tool
    from .context import Context
    from .principal import Principal

ARGUMENTS: Final = "1MiB"
TASK_ARGUMENTS: Final = "256KiB"
"""The default limits on the size of a call's arguments; those of a task, which are stored, have the lower one."""


@dataclass(frozen=True, slots=True)
class Call:
    """One call of a tool that is there.

    Attributes:
        tool: The tool.
        arguments: The arguments from the caller; absent arguments are an empty object.
        size: The bytes of these as JSON; `None` if they are not JSON.
        context: The handler's `ctx`.
        is_answer: True if it goes on with a call that asked a question, from 2026-07-28 on.
        is_run: True if it is the run of a task, whose call has been let through.
        begin: Makes a task of the call in place of running the handler.
        clashes: Faults of the arguments apart from their schema: a line for each that came twice.
    """

    tool: Tool
    arguments: dict[str, Any]
    size: int | None
    context: Context
    is_answer: bool = False
    is_run: bool = False
    begin: Proceed | None = None
    clashes: Sequence[str] = ()

    @property
    def principal(self) -> Principal:
        """The caller."""
        return self.context.principal


Proceed: TypeAlias = Callable[[Call], Awaitable[Outcome]]
"""The rest of the chain."""

Step: TypeAlias = Callable[[Proceed, Call], Awaitable[Outcome]]


async def check_size(proceed: Proceed, call: Call) -> Outcome:
    """Refuse a call whose arguments are too large: a step."""
    if call.is_run or call.size is None:
        return await proceed(call)
    most = units.parse_size(
        call.tool.policy.get("maxArgumentBytes", ARGUMENTS if call.begin is None else TASK_ARGUMENTS)
    )
    if call.size <= most:
        return await proceed(call)
    name = call.tool.name if call.begin is None else f"a task of {call.tool.name}"
    text = f"The arguments of {name} are too large: {call.size:,} bytes; the limit is {most:,}. Send less."
    return refuse(text, "limited", "argument_size")
