"""A server's pending requests, which receive an error if the server stops first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from ...mcp.errors import INTERNAL_ERROR, ProtocolError
from ..core.call_state import record_status

if TYPE_CHECKING:
    from ..core.request import Answer, Request, Result

LISTENING: Final = "subscriptions/listen"
"""The method whose response closes a stream (MCP 2026-07-28)."""

_STOPPED: Final = (
    "The server stopped before it could respond. The request may have taken effect; check before you send it again."
)


class PendingRequests:
    """A server's pending requests."""

    def __init__(self) -> None:
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ended: set[asyncio.Task[Any]] = set()

    def end(self) -> None:
        """End each pending request with an error; listening streams close separately."""
        for task in self._tasks - self._ended:
            self._ended.add(task)
            task.cancel()

    def wrap(self, call_next: Answer) -> Answer:
        """Return a function that registers each request while it is pending."""

        async def call(request: Request) -> Result:
            task = asyncio.current_task()
            if request.id is None or task is None or task in self._tasks:
                return await call_next(request)
            self._tasks.add(task)
            try:
                return await call_next(request)
            except asyncio.CancelledError:
                # If the count is not zero, there was another cancellation, which must propagate.
                if task not in self._ended or task.uncancel():
                    raise
            finally:
                self._tasks.discard(task)
                self._ended.discard(task)
            record_status("cancelled", "cancelled")
            raise ProtocolError(INTERNAL_ERROR, _STOPPED)

        return call
