"""The step in every call that limits the size of arguments."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ...values import units
from ..core.outcomes import Outcome, refuse

if TYPE_CHECKING:
    from ...package import Tool
    from ..core.request import Handle, Request

ARGUMENTS: Final = "1MiB"
TASK_ARGUMENTS: Final = "256KiB"
"""The default limits on the size of arguments; tasks have a lower limit, because their arguments are stored."""


def limit_arguments(tool: Tool, call_next: Handle) -> Handle:
    """Refuse calls with arguments that are too large."""
    own: str | None = tool.policy.get("maxArgumentBytes")
    most, most_of_task = units.parse_size(own or ARGUMENTS), units.parse_size(own or TASK_ARGUMENTS)

    async def call(request: Request) -> Outcome:
        size, limit = request.size, most if request.begin is None else most_of_task
        if size is None or size <= limit:
            return await call_next(request)
        name = tool.name if request.begin is None else f"a task of {tool.name}"
        text = f"The arguments of {name} are too large: {size:,} bytes; the limit is {limit:,}. Send less."
        return refuse(text, "limited", "argument_size")

    return call
