"""One connection's pending requests, their timeouts, and callback errors.

In MCP 2025-11-25 and earlier, a server asks its question during a call, in a request that does not identify the call.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...observability.logs import log

if TYPE_CHECKING:
    from collections.abc import (
        Awaitable,
        Callable,
        Generator,
        Sequence,
    )
    from types import TracebackType

    from mcp_types import ElicitRequestURLParams

    from ..rpc.mcp_error import MCPError


@dataclass(slots=True)
class _Request:
    """A request, its timeout, the seconds that remained when the timer stopped, and the error that ended it.

    Attributes:
        allows_questions: Whether the server may ask questions during the request.
    """

    timeout: asyncio.Timeout
    left: float | None
    allows_questions: bool
    error: Exception | None = None

    def pause_clock(self, now: float) -> None:
        when = self.timeout.when()
        if when is not None and not self.timeout.expired():
            self.left = when - now
            self.timeout.reschedule(None)

    def resume_clock(self, now: float) -> None:
        if self.left is not None and not self.timeout.expired():
            self.timeout.reschedule(now + self.left)

    def stop(self) -> None:
        if not self.timeout.expired():
            self.timeout.reschedule(asyncio.get_running_loop().time())


class PendingRequests:
    """One connection's pending requests and callbacks.

    Attributes:
        expects_questions: True if any callback can answer a server's question.
        open_urls: Asks a person to visit the URLs that a request requires, or `None` if no person can be asked.
    """

    def __init__(self, *, expects_questions: bool) -> None:
        self.expects_questions = expects_questions
        self.open_urls: Callable[[Sequence[ElicitRequestURLParams]], Awaitable[bool]] | None = None
        self._requests: list[_Request] = []
        self._questions = 0
        self._failure: Exception | None = None
        self._origin: tuple[TracebackType | None, BaseException | None] = (None, None)
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Record that the connection is open in the running event loop."""
        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        """Record that the connection's block was exited."""
        self._loop = None

    @property
    def is_open(self) -> bool:
        """True within the `async with` block of the connection."""
        return self._loop is not None

    def explain_close(self, error: MCPError) -> MCPError:
        """Return the error, or a clearer one if the client was closed before the response arrived."""
        from mcp_types import CONNECTION_CLOSED

        from ..rpc.mcp_error import MCPError

        if error.code != CONNECTION_CLOSED or self._loop is not None:
            return error
        message = "the client was closed before the response arrived, because its `async with` block was exited"
        return MCPError(code=CONNECTION_CLOSED, message=message)

    def check_open(self) -> None:
        """Check that the connection is open.

        Raises:
            RuntimeError: The connection is closed.
        """
        if self._loop is None:
            raise RuntimeError(
                "the client is closed: its `async with` block was exited; use it inside the block, or connect again"
            )

    def check_loop(self) -> None:
        """Check that the current event loop is the connection's. Requests from another loop would break the connection.

        Raises:
            RuntimeError: The connection was opened in another event loop.
        """
        if self._loop is not None and self._loop is not asyncio.get_running_loop():
            raise RuntimeError(
                "this client belongs to another event loop; connect a client in this "
                "one, or, from another thread, use asyncio.run_coroutine_threadsafe(…, loop)"
            )

    @property
    def is_asking(self) -> bool:
        """True while a callback is answering the server."""
        return self._questions > 0

    def request(self, seconds: float | None, *, allows_questions: bool = True) -> AbstractAsyncContextManager[None]:
        """Limit the time from sending a request to receiving its response.

        Args:
            seconds: The server's time limit, excluding time spent in callbacks; `None` for no limit.
            allows_questions: Whether the server may ask questions during the request.

        Raises:
            MCPError: The request timed out (`REQUEST_TIMEOUT`).
            RuntimeError: The connection was opened in another event loop.
            Exception: An exception from a callback during the request, or the error passed to `fail`.
        """
        return _RequestTimer(
            self, _Request(asyncio.timeout(None if self._questions else seconds), seconds, allows_questions)
        )

    def begin(self, request: _Request) -> None:
        """Add a request; raises the same exceptions as `request`."""
        self.check_loop()
        self.check_failure()
        self._requests.append(request)

    def end(self, request: _Request) -> None:
        """Remove a request."""
        self._requests.remove(request)

    def fail(self, error: Exception) -> None:
        """Fail all current and later requests with the error that ended the connection."""
        self._failure = error
        self._origin = error.__traceback__, error.__context__
        for request in self._requests:
            request.stop()

    def check_failure(self) -> None:
        """Raise the error that ended the connection, if one did."""
        if self._failure is not None:
            # Each raise adds frames to the traceback; reset it so that the exception does not keep the frames of every
            # call.
            self._failure.__traceback__, self._failure.__context__ = self._origin
            raise self._failure

    @contextmanager
    def pause_for_question(self) -> Generator[None, None, None]:
        """Stop request timers while a callback answers the server.

        Raises:
            MCPError: The callback raised. The pending request raises its exception; if several are pending, the
                server's question may belong to any of them, and the exception is logged.
        """
        from mcp_types import INTERNAL_ERROR

        from ..rpc.mcp_error import MCPError

        self._pause_clocks()
        try:
            yield
        except MCPError:
            raise
        except Exception as error:
            asked_in = [request for request in self._requests if request.allows_questions]
            if len(asked_in) == 1:
                asked_in[0].error = error
                asked_in[0].stop()
            else:
                log().exception("a callback for the server's question failed")
            raise MCPError(code=INTERNAL_ERROR, message="The client could not answer") from error
        finally:
            self._resume_clocks()

    def _pause_clocks(self) -> None:
        self._questions += 1
        if self._questions == 1:
            now = asyncio.get_running_loop().time()
            for request in self._requests:
                request.pause_clock(now)

    def _resume_clocks(self) -> None:
        self._questions -= 1
        if self._questions == 0:
            now = asyncio.get_running_loop().time()
            for request in self._requests:
                request.resume_clock(now)


class _RequestTimer(AbstractAsyncContextManager[None, bool]):
    """The timer of one request. A generator would leave a reference cycle with its exception (Python 3.13)."""

    def __init__(self, in_flight: PendingRequests, request: _Request) -> None:
        self._in_flight = in_flight
        self._request = request
        self._seconds = request.left

    async def __aenter__(self) -> None:
        self._in_flight.begin(self._request)
        await self._request.timeout.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        request = self._request
        is_late = False
        try:
            await request.timeout.__aexit__(kind, error, trace)
        except TimeoutError:
            is_late = True
        finally:
            self._in_flight.end(request)
        if isinstance(error, asyncio.CancelledError) and not is_late:
            return False
        if request.error is not None:
            try:
                raise request.error from request.error.__cause__
            finally:
                request.error = None  # its traceback references this frame and thus the request
        if error is not None and not is_late:
            return False
        self._in_flight.check_failure()
        if is_late:
            from mcp_types import REQUEST_TIMEOUT

            from ..rpc.mcp_error import MCPError

            message = f"the server did not respond within {self._seconds} seconds"
            raise MCPError(code=REQUEST_TIMEOUT, message=message) from None
        return False
