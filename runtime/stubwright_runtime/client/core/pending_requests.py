"""One connection's pending requests, their timeouts, and callback errors.

In MCP 2025-11-25 and earlier, a server asks its question during a call, in a request that does not identify the call.
"""

from __future__ import annotations

import asyncio
from contextlib import contextmanager
from contextvars import Context
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


class PendingRequests:
    """One connection's pending requests and callbacks.

    Attributes:
        expects_questions: True if any callback can answer a server's question.
        open_urls: Asks a person to visit the URLs that a request requires, or `None` if no person can be asked.
    """

    def __init__(self, *, expects_questions: bool) -> None:
        self.expects_questions = expects_questions
        self.open_urls: Callable[[Sequence[ElicitRequestURLParams]], Awaitable[bool]] | None = None
        self._requests: dict[RequestTimer, None] = {}
        self._alarm: asyncio.TimerHandle | None = None
        self._questions = 0
        self._failure: Exception | None = None
        self._origin: tuple[TracebackType | None, BaseException | None] = (None, None)
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Record that the connection is open in the running event loop."""
        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        """Record that the `async with` block of the connection was exited."""
        self._loop = None
        self._cancel_idle_alarm()

    @property
    def is_open(self) -> bool:
        """True within the `async with` block of the connection."""
        return self._loop is not None

    def explain_close(self, error: MCPError) -> MCPError:
        """Return `error`, or a clearer error if the client was closed before the response arrived."""
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

    def check_loop(self) -> asyncio.AbstractEventLoop:
        """Return the current event loop if the connection was opened in it; requests from another would break it.

        Raises:
            RuntimeError: The connection is closed, or was opened in another event loop.
        """
        loop = asyncio.get_running_loop()
        if self._loop is not loop:
            self.check_open()
            raise RuntimeError(
                "this client belongs to another event loop; connect a client in this "
                "one, or, from another thread, use asyncio.run_coroutine_threadsafe(…, loop)"
            )
        return loop

    @property
    def is_asking(self) -> bool:
        """True while a callback is answering the server."""
        return self._questions > 0

    def request(self, seconds: float | None, *, allows_questions: bool = True) -> RequestTimer:
        """Limit the time from sending a request to receiving its response.

        Args:
            seconds: The server's time limit, excluding time spent in callbacks; `None` for no limit.
            allows_questions: Whether the server may ask questions during the request.

        Returns:
            A context manager. Its exit raises the same exceptions as its entry:

            - `MCPError` if the request timed out (`REQUEST_TIMEOUT`);
            - `RuntimeError` if the connection was opened in another event loop;
            - an exception from a callback during the request, or the error passed to `fail`.
        """
        return RequestTimer(self, seconds, allows_questions)

    def begin(self, request: RequestTimer) -> None:
        """Add a request and start its timer. Raises the same exceptions as the context manager from `request`."""
        loop = self.check_loop()
        if self._failure is not None:
            self.check_failure()
        self._requests[request] = None
        if request.left is not None and not self._questions:
            self._start_clock(request, request.left, loop)

    def end(self, request: RequestTimer) -> None:
        """Remove a request that has ended."""
        del self._requests[request]
        if self._loop is None:
            self._cancel_idle_alarm()

    def fail(self, error: Exception) -> None:
        """Fail all current and later requests with the error that ended the connection."""
        self._failure = error
        self._origin = error.__traceback__, error.__context__
        for request in self._requests:
            request.stop()

    def check_failure(self) -> None:
        """Raise the error that ended the connection, if any."""
        if self._failure is not None:
            # Each raise adds frames to the traceback; reset it so that the exception does not keep the frames of every
            # call.
            self._failure.__traceback__, self._failure.__context__ = self._origin
            raise self._failure

    @contextmanager
    def pause_for_question(self) -> Generator[None, None, None]:
        """Stop all request timers while a callback answers the server.

        Raises:
            MCPError: The callback raised an exception. The pending request raises that exception. If several requests
                are pending, the server's question could belong to any of them, so the exception is only logged.
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
                if request.deadline is not None:
                    request.left, request.deadline = request.deadline - now, None

    def _resume_clocks(self) -> None:
        self._questions -= 1
        if self._questions == 0:
            loop = asyncio.get_running_loop()
            for request in self._requests:
                if request.left is not None:
                    self._start_clock(request, request.left, loop)

    def _start_clock(self, request: RequestTimer, seconds: float, loop: asyncio.AbstractEventLoop) -> None:
        """Time out a request in `seconds`.

        One alarm, for the earliest deadline, serves all requests. It is not moved when a request ends, since nearly all
        requests end early.
        """
        deadline = request.deadline = loop.time() + seconds
        if self._alarm is None or deadline < self._alarm.when():
            self._set_alarm(deadline, loop)

    def _set_alarm(self, deadline: float, loop: asyncio.AbstractEventLoop) -> None:
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm = loop.call_at(deadline, self._expire, deadline, loop, context=Context())

    def _expire(self, reached: float, loop: asyncio.AbstractEventLoop) -> None:
        """Time out the requests whose deadline has been reached, and set the alarm for the others."""
        self._alarm = None
        reached = max(reached, loop.time())
        for request in self._requests:
            if request.deadline is not None and request.deadline <= reached:
                request.expire()
        if left := [request.deadline for request in self._requests if request.deadline is not None]:
            self._set_alarm(min(left), loop)

    def _cancel_idle_alarm(self) -> None:
        if self._alarm is not None and not self._requests:
            self._alarm.cancel()
            self._alarm = None


class RequestTimer:
    """The timeout of one request, which cancels the request's task, as `asyncio.timeout` does.

    Attributes:
        allows_questions: Whether the server may ask questions during the request.
        left: The remaining seconds when the clock was last started or paused; `None` for no limit.
        deadline: The loop's time at which the request times out; `None` if its clock is not running.
        error: An exception from a callback, which the request raises when it ends.
    """

    __slots__ = (
        "_cancelling",
        "_in_flight",
        "_is_expired",
        "_seconds",
        "_stopping",
        "_task",
        "allows_questions",
        "deadline",
        "error",
        "left",
    )

    def __init__(self, in_flight: PendingRequests, seconds: float | None, allows_questions: bool) -> None:
        self.allows_questions = allows_questions
        self.left = seconds
        self.deadline: float | None = None
        self.error: Exception | None = None
        self._in_flight = in_flight
        self._seconds = seconds
        self._stopping: asyncio.Handle | None = None
        self._is_expired = False

    def __enter__(self) -> None:
        task = asyncio.current_task()
        if task is None:
            raise RuntimeError("a request must be sent in an asyncio task")
        self._task = task
        self._cancelling = task.cancelling()
        self._in_flight.begin(self)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._in_flight.end(self)
        if self._stopping is not None:
            self._stopping.cancel()
        is_first = self._is_expired and self._task.uncancel() <= self._cancelling
        is_late = is_first and isinstance(error, asyncio.CancelledError)
        if isinstance(error, asyncio.CancelledError) and not is_late:
            return
        if self.error is not None:
            try:
                raise self.error from self.error.__cause__
            finally:
                self.error = None  # its traceback references this frame and thus the request
        if error is not None and not is_late:
            return
        self._in_flight.check_failure()
        if is_late:
            from mcp_types import REQUEST_TIMEOUT

            from ..rpc.mcp_error import MCPError

            message = f"the server did not respond within {self._seconds} seconds"
            raise MCPError(code=REQUEST_TIMEOUT, message=message) from None

    def stop(self) -> None:
        """Cancel the request's task in the next event loop iteration, even if the server asks another question."""
        self.left = self.deadline = None
        if self._stopping is None and not self._is_expired:
            self._stopping = asyncio.get_running_loop().call_later(0, self.expire)

    def expire(self) -> None:
        """Cancel the request's task."""
        self.left = self.deadline = None
        self._is_expired = True
        self._task.cancel()
