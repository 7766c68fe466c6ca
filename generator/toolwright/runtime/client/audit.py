"""Telling a caller's `on_call` of each call: that it starts, and how it ended.

Takes the call; gives two events, whose arguments are copies without what the manifest redacts. It changes nothing
about the call.
"""

from __future__ import annotations

import inspect
import time
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from .errors import CallRefused, InvalidResult, ResultTooLarge, ToolFailed
from .options import CallEvent, OnCall, Outcome

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from ..package import Tool

_CALLS: Final = count(1)


@dataclass(slots=True)
class Record:
    """What is known of a call beside how it ended: how many strings of its result were cleaned."""

    cleaned: int = 0


@asynccontextmanager
async def report(tool: Tool, arguments: Mapping[str, Any], on_call: OnCall | None) -> AsyncGenerator[Record, None]:
    """Tell `on_call`, if there is one, of the call that the block makes, which fills in the record that it is given.

    What `on_call` raises, the call raises.
    """
    record = Record()
    if on_call is None:
        yield record
        return
    start = CallEvent(next(_CALLS), "start", tool.name, tool.shown(arguments))
    await _tell(on_call, start)
    began = time.monotonic()
    outcome: Outcome = "ok"
    try:
        yield record
    except BaseException as error:
        outcome = _outcome(error)
        raise
    finally:
        duration = time.monotonic() - began
        end = replace(start, phase="end", outcome=outcome, duration=duration, cleaned=record.cleaned)
        await _tell(on_call, end)


async def _tell(on_call: OnCall, event: CallEvent) -> None:
    import anyio

    # An audit log must not lose the end of a call that was cancelled.
    with anyio.CancelScope(shield=event.outcome == "cancelled"):
        telling = on_call(event)
        if inspect.isawaitable(telling):
            await telling


def _outcome(error: BaseException) -> Outcome:
    from mcp import MCPError
    from mcp_types import REQUEST_TIMEOUT

    match error:
        case ToolFailed():
            return "failed"
        case CallRefused():
            return "refused"
        case InvalidResult():
            return "invalid"
        case ResultTooLarge():
            return "too_large"
        case MCPError(code=code) if code == REQUEST_TIMEOUT:
            return "timeout"
        case Exception():
            outcome: Outcome = getattr(error, "__toolwright_outcome__", "error")
            return outcome
        case _:
            return "cancelled"
