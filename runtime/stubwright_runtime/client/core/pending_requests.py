"""The requests that are in progress over one connection: their time, and what goes wrong while the server asks back.

Before 2026-07-28 the server asks in the middle of a call, by its own request that does not specify which call it
belongs to. It sends nothing.
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
    """One request: its timeout, the seconds left when its clock stopped, and the error that ended it.

    Attributes:
        is_asked_in: Whether the server may ask questions during the request.
    """

    timeout: asyncio.Timeout
    left: float | None
    is_asked_in: bool
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
    """The requests and callbacks under way over one connection.

    Attributes:
        expects_questions: True if there are callbacks that the server can ask.
        open_urls: Has a person visit URLs without which a request cannot go on; `None` if no person can be asked.
    """

    def __init__(self, *, expects_questions: bool) -> None:
        """Start without requests."""
        self.expects_questions = expects_questions
        self.open_urls: Callable[[Sequence[ElicitRequestURLParams]], Awaitable[bool]] | None = None
        self._requests: list[_Request] = []
        self._questions = 0
        self._failure: Exception | None = None
        self._origin: tuple[TracebackType | None, BaseException | None] = (None, None)
        self._loop: asyncio.AbstractEventLoop | None = None

    def start(self) -> None:
        """Record that the connection is open, in the event loop that runs now."""
        self._loop = asyncio.get_running_loop()

    def close(self) -> None:
        """Record that the block of the connection has ended."""
        self._loop = None

    @property
    def is_open(self) -> bool:
        """False before and after the block of the connection."""
        return self._loop is not None

    def explain_close(self, error: MCPError) -> MCPError:
        """Return the error itself, or a better one if the block of the connection ended before the answer came."""
        from mcp_types import CONNECTION_CLOSED

        from ..rpc.mcp_error import MCPError

        if error.code != CONNECTION_CLOSED or self._loop is not None:
            return error
        message = "the client was closed before the answer came, as its `async with` block has ended"
        return MCPError(code=CONNECTION_CLOSED, message=message)

    def check_open(self) -> None:
        """Refuse to use a connection after its block.

        Raises:
            RuntimeError: The connection is closed.
        """
        if self._loop is None:
            raise RuntimeError(
                "the client is closed, as its `async with` block has ended; use it inside the block, or connect again"
            )

    def check_loop(self) -> None:
        """Refuse to send from another event loop, where no answer would come, and which would break the connection.

        Raises:
            RuntimeError: The connection was opened in another event loop.
        """
        if self._loop is not None and self._loop is not asyncio.get_running_loop():
            raise RuntimeError(
                "this client was connected in another event loop, which alone can use it; connect a client in this "
                "one, or, from another thread, use asyncio.run_coroutine_threadsafe(…, loop)"
            )

    @property
    def is_asking(self) -> bool:
        """True if a callback is answering the server now."""
        return self._questions > 0

    def request(self, seconds: float | None, *, is_asked_in: bool = True) -> AbstractAsyncContextManager[None]:
        """Bound the time of one request, from sending it to its answer.

        Args:
            seconds: The time limit of the server, without the time in which it waits for us; `None` for no limit.
            is_asked_in: True if the server may ask in the middle of it.

        Raises:
            MCPError: It took longer (`REQUEST_TIMEOUT`).
            RuntimeError: The connection was opened in another event loop.
            Exception: The exception of a callback that answered the server in the meantime, or the one given to `fail`.
        """
        return _RequestTimer(
            self, _Request(asyncio.timeout(None if self._questions else seconds), seconds, is_asked_in)
        )

    def begin(self, request: _Request) -> None:
        """Count a request; raises as `request` does."""
        self.check_loop()
        self.check_failure()
        self._requests.append(request)

    def end(self, request: _Request) -> None:
        """Count a request no longer."""
        self._requests.remove(request)

    def fail(self, error: Exception) -> None:
        """End all requests, including later ones, with the error that ended the connection."""
        self._failure = error
        self._origin = error.__traceback__, error.__context__
        for request in self._requests:
            request.stop()

    def check_failure(self) -> None:
        """Raise the error that ended the connection, if one did."""
        if self._failure is not None:
            # Each raise adds the frames of its call to the exception, so that one exception would hold the frames of
            # all calls.
            self._failure.__traceback__, self._failure.__context__ = self._origin
            raise self._failure

    @contextmanager
    def pause_for_question(self) -> Generator[None, None, None]:
        """Stop the clocks while a callback answers the server.

        Raises:
            MCPError: The callback raised. The request that is in progress raises the exception itself; where there
                are several, it is unknown which of them the server asked for, and the exception is logged.
        """
        from mcp_types import INTERNAL_ERROR

        from ..rpc.mcp_error import MCPError

        self._pause_clocks()
        try:
            yield
        except MCPError:
            raise
        except Exception as error:
            asked_in = [request for request in self._requests if request.is_asked_in]
            if len(asked_in) == 1:
                asked_in[0].error = error
                asked_in[0].stop()
            else:
                log().exception("a question of the server could not be answered")
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
    """The time of one request. It is a class, since a generator leaves a reference cycle with its exception (Python
    3.13).
    """

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
                request.error = None  # its traceback holds this frame, and with it the request
        if error is not None and not is_late:
            return False
        self._in_flight.check_failure()
        if is_late:
            from mcp_types import REQUEST_TIMEOUT

            from ..rpc.mcp_error import MCPError

            message = f"the server did not answer in {self._seconds} seconds"
            raise MCPError(code=REQUEST_TIMEOUT, message=message) from None
        return False
