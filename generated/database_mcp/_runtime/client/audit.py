# Part of toolwright's runtime, copied as it is. DO NOT EDIT.
"""Telling a caller's `on_call` of each call: that it starts, and how it ended.

Takes the call; gives two events, whose arguments are copies without what the manifest redacts. It changes nothing
about the call.
"""

from __future__ import annotations

import inspect
import time
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from .errors import CallRefused, InvalidResult, ToolFailed
from .options import CallEvent, OnCall, Outcome

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Mapping

    from ..package import Tool

_CALLS: Final = count(1)


@asynccontextmanager
async def report(tool: Tool, arguments: Mapping[str, Any], on_call: OnCall | None) -> AsyncGenerator[None, None]:
    """Tell `on_call`, if there is one, of the call that the block makes. What `on_call` raises, the call raises."""
    if on_call is None:
        yield
        return
    start = CallEvent(next(_CALLS), "start", tool.name, tool.shown(arguments))
    await _tell(on_call, start)
    began = time.monotonic()
    outcome: Outcome = "ok"
    try:
        yield
    except BaseException as error:
        outcome = _outcome(error)
        raise
    finally:
        end = replace(start, phase="end", outcome=outcome, duration=time.monotonic() - began)
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
        case MCPError(code=code) if code == REQUEST_TIMEOUT:
            return "timeout"
        case Exception():
            return "error"
        case _:
            return "cancelled"
