"""The pending requests of a server; a stop answers the remaining ones with an error."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from ...mcp.errors import INTERNAL_ERROR, ProtocolError
from ..core.call_state import note

if TYPE_CHECKING:
    from ..core.request import Answer, Request, Result

LISTENING: Final = "subscriptions/listen"
"""The method whose requests are answered only when they end (MCP 2026-07-28)."""

_STOPPED: Final = (
    "The server stopped before it could answer. The request may have taken effect; check before you send it again."
)


class PendingRequests:
    """The requests under way."""

    def __init__(self) -> None:
        """Begin with no request under way."""
        self._tasks: set[asyncio.Task[Any]] = set()
        self._ended: set[asyncio.Task[Any]] = set()

    def end(self) -> None:
        """Answer each request under way with an error; listening streams end by themselves."""
        for task in self._tasks - self._ended:
            self._ended.add(task)
            task.cancel()

    def wrap(self, call_next: Answer) -> Answer:
        """Note the requests of a method while they are answered."""

        async def call(request: Request) -> Result:
            task = asyncio.current_task()
            if request.id is None or task is None or task in self._tasks:
                return await call_next(request)
            self._tasks.add(task)
            try:
                return await call_next(request)
            except asyncio.CancelledError:
                # A count that is left is a cancellation by something else, which goes on.
                if task not in self._ended or task.uncancel():
                    raise
            finally:
                self._tasks.discard(task)
                self._ended.discard(task)
            note("cancelled", "cancelled")
            raise ProtocolError(INTERNAL_ERROR, _STOPPED)

        return call
