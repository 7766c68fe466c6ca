"""Reports the start and end of each call to the caller's `on_call`."""

from __future__ import annotations

import inspect
import time
from dataclasses import replace
from itertools import count
from typing import TYPE_CHECKING, Any, Final

from ..core.errors import CallRefused, InvalidResult, ResultTooLarge, ToolFailed
from ..core.options import CallEvent, OnCall, Outcome

if TYPE_CHECKING:
    from collections.abc import Mapping

    from ...package import Tool

_CALLS: Final = count(1)


class Record:
    """Reports one call to `on_call`.

    Attributes:
        cleaned: The number of sanitized strings in the result, set before the end.
    """

    def __init__(self, tool: Tool, arguments: Mapping[str, Any], on_call: OnCall | None) -> None:
        self.cleaned = 0
        self._tool = tool
        self._arguments = arguments
        self._on_call = on_call
        self._start: CallEvent | None = None
        self._began = 0.0

    async def begin(self) -> None:
        """Report the start, once."""
        if self._on_call is not None and self._start is None:
            self._start = CallEvent(next(_CALLS), "start", self._tool.name, self._tool.redact(self._arguments))
            await _report(self._on_call, self._start)
            self._began = time.monotonic()

    async def end(self, error: BaseException | None) -> None:
        """Report the end, with the error if the call failed."""
        if self._on_call is not None and self._start is not None:
            outcome: Outcome = "ok" if error is None else _outcome(error)
            duration = time.monotonic() - self._began
            end = replace(self._start, phase="end", outcome=outcome, duration=duration, cleaned=self.cleaned)
            await _report(self._on_call, end)


async def _report(on_call: OnCall, event: CallEvent) -> None:
    import anyio

    # Audit logs must not lose the end of a cancelled call.
    with anyio.CancelScope(shield=event.outcome == "cancelled"):
        result = on_call(event)
        if inspect.isawaitable(result):
            await result


def _outcome(error: BaseException) -> Outcome:
    from mcp_types import REQUEST_TIMEOUT

    from ..rpc.mcp_error import MCPError

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
            outcome: Outcome = getattr(error, "__stubwright_outcome__", "error")
            return outcome
        case _:
            return "cancelled"
