"""The connection of a test run, which is reopened after a call breaks it.

Each connection has its own task, so that a broken connection fails only its own request.
"""

from __future__ import annotations

import json
import math
import time
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING, Any, Final

import anyio
from mcp_types import METHOD_NOT_FOUND
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from stubwright.contract_tests.answers import (
    DEFAULT_WAIT,
    Answer,
    Disconnect,
    ProtocolError,
    Result,
    Timeout,
    find_limit,
)
from stubwright.importers.limits import STARTING
from stubwright.importers.live import Connection, UnreachableError, open_connection
from stubwright.importers.sources import Source
from stubwright_runtime.client.core.connect_errors import Busy, ConnectError
from stubwright_runtime.client.rpc.mcp_error import MCPError
from stubwright_runtime.mcp.parameter_headers import list_mirrored, make_headers
from stubwright_runtime.mcp.vocabulary import TOOLS

if TYPE_CHECKING:
    from anyio.abc import TaskGroup, TaskStatus


class BudgetError(Exception):
    """The server's time budget is used up."""


_STARTING_AGAIN: Final = 60.0
"""The timeout in seconds for restarting a command. Its packages are already installed."""

_REMEMBERED: Final = 256
"""The maximum number of calls recorded per connection."""


@dataclass(frozen=True, slots=True)
class SentCall:
    """A sent call: the tool, the arguments, and the `time.monotonic` time of sending."""

    tool: Mapping[str, Any]
    arguments: Any
    time: float

    @property
    def name(self) -> str:
        """The tool's name."""
        return str(self.tool["name"])


@dataclass(frozen=True, slots=True)
class Request:
    """A sent request other than a call to a listed tool, with a label and the `time.monotonic` time of sending."""

    label: str
    method: str
    params: Mapping[str, Any]
    time: float


@dataclass(frozen=True, slots=True)
class Loss:
    """A lost connection: the last calls, all other requests, the reason, and the `time.monotonic` time of the loss."""

    calls: Sequence[SentCall]
    why: str
    time: float
    requests: Sequence[Request] = ()


class Session:
    """Sends requests to one server, and reconnects if necessary.

    Attributes:
        deadline: The time limit for each response, in seconds.
        end: The `time.monotonic` time at which the server's time budget is used up. Later requests raise BudgetError.
    """

    def __init__(self, source: Source, deadline: float, tasks: TaskGroup, rate: float = math.inf) -> None:
        """Create a session without a connection.

        Args:
            source: The server to connect to.
            deadline: The time limit for each response, in seconds.
            tasks: The task group for connections, which have one task each.
            rate: The maximum number of requests per second.
        """
        self._pause = 1 / rate
        self._next = 0.0
        self._source = source
        self.deadline = deadline
        self.end = math.inf
        self._tasks = tasks
        self._connection: Connection | None = None
        self._ended = anyio.Event()
        self._failure: UnreachableError | None = None
        self._was_open = False
        self._unreadable = 0
        self._sent: deque[SentCall] = deque(maxlen=_REMEMBERED)
        self._requests: list[Request] = []
        self._loss: Loss | None = None

    async def connect(self) -> Connection:
        """Return the open connection, or open a new connection. Raises UnreachableError and BudgetError."""
        if self._connection is None:
            if self.count_seconds_left() == 0:
                raise BudgetError
            self._failure = None
            self._sent.clear()
            self._requests.clear()
            self._ended = anyio.Event()
            await self._tasks.start(self._hold, self._ended)
            if self._connection is None and self.count_seconds_left() == 0:
                raise BudgetError
        if self._connection is None:
            raise self._failure or UnreachableError("the connection was closed")
        return self._connection

    async def _hold(self, ended: anyio.Event, *, task_status: TaskStatus[None]) -> None:
        is_started = False
        try:
            starting = min(_STARTING_AGAIN if self._was_open else STARTING, self.count_seconds_left())
            async with open_connection(self._source, starting=starting) as connection:
                self._connection, self._was_open = connection, True
                is_started = True
                task_status.started()
                await ended.wait()
        except UnreachableError as error:
            self._failure = error
            if not is_started:
                task_status.started()

    def pop_loss(self) -> Loss | None:
        """Return and clear the last lost connection, if any."""
        loss, self._loss = self._loss, None
        return loss

    @property
    def has_loss(self) -> bool:
        """True if the connection was lost since `pop_loss`."""
        return self._loss is not None

    @property
    def has_calls(self) -> bool:
        """True if calls were sent over the open connection."""
        return self._connection is not None and bool(self._sent)

    @contextmanager
    def limit(self, seconds: float) -> Iterator[None]:
        """Make requests in the block raise BudgetError after this time, unless the budget is used up earlier."""
        end, self.end = self.end, min(self.end, time.monotonic() + seconds)
        try:
            yield
        finally:
            self.end = end

    async def outlast(self, seconds: float) -> Disconnect | None:
        """Wait for `seconds`. Return why the server exited in the meantime, or None if it is still running.

        Raises:
            BudgetError: The server's time budget is used up first.
        """
        connection = await self.connect()
        seconds_left = self.count_seconds_left()
        with anyio.move_on_after(min(seconds, seconds_left)):
            await connection.wait_for_end()
        if not connection.has_ended and seconds_left < seconds:
            raise BudgetError
        answer = await self.ask("tools/list")
        return answer if isinstance(answer, Disconnect) else None

    def count_seconds_left(self) -> float:
        """Return the server's remaining time, in seconds."""
        return max(0.0, self.end - time.monotonic())

    async def disconnect(self) -> None:
        """Close the connection and stop the server if it is a command. The next request opens a new connection."""
        if self._connection is not None:
            self._unreadable += self._connection.unreadable
        self._connection = None
        self._ended.set()
        await anyio.lowlevel.checkpoint()

    @property
    def unreadable(self) -> int:
        """The number of messages so far from the server that were not JSON-RPC."""
        return self._unreadable + (self._connection.unreadable if self._connection is not None else 0)

    async def list_tools(self) -> Sequence[Any]:
        """Return all entries of `tools/list`, or none if the server offers neither tools nor this method.

        Raises:
            UnreachableError: The list cannot be read.
            BudgetError: The server's time budget is used up before the response's deadline.
        """
        connection = await self.connect()
        seconds_left = self.count_seconds_left()
        try:
            with anyio.fail_after(min(self.deadline, seconds_left)):
                return await connection.list_pages(TOOLS)
        except MCPError as error:
            if error.code == METHOD_NOT_FOUND and "tools" not in connection.capabilities:
                return []
            why = error.why if isinstance(error, ConnectError) else error.message
            raise UnreachableError(f"`{self._source.label}` cannot list its tools: {why}") from None
        except TimeoutError:
            if seconds_left < self.deadline:
                raise BudgetError from None
            message = f"`{self._source.label}` did not respond to `tools/list` within {self.deadline:g} s"
            raise UnreachableError(message) from None
        except UnreachableError as error:
            raise UnreachableError(f"`{self._source.label}` {error}") from None

    async def _wait_for_turn(self) -> None:
        """Wait until the rate allows a request. Raises BudgetError if the server's time is used up first."""
        now = time.monotonic()
        turn = max(now, self._next)
        if turn > self.end:
            raise BudgetError
        self._next = turn + self._pause
        if turn > now:
            await anyio.sleep(turn - now)

    async def call(self, tool: Mapping[str, Any], arguments: Any, meta: Mapping[str, Any] | None = None) -> Answer:
        """Call a tool, optionally with `_meta` fields. Raises UnreachableError and BudgetError, as `ask` does."""
        connection = await self.connect()
        headers = {}
        if connection.revision in MODERN_PROTOCOL_VERSIONS and isinstance(arguments, Mapping):
            headers = make_headers(list_mirrored(tool.get("inputSchema")), arguments)
        self._sent.append(SentCall(tool, arguments, time.monotonic()))
        more = {} if meta is None else {"_meta": meta}
        return await self.ask("tools/call", headers, name=tool["name"], arguments=arguments, **more)

    async def request(self, label: str, method: str, params: Mapping[str, Any]) -> Answer:
        """Send a request other than a call to a listed tool, and record it with a label. Raises the exceptions of
        `ask`.
        """
        await self.connect()
        self._requests.append(Request(label, method, params, time.monotonic()))
        return await self.ask(method, **params)

    async def ask(self, method: str, headers: Mapping[str, str] | None = None, **params: Any) -> Answer:
        """Send a request and return the outcome.

        Raises:
            UnreachableError: The connection is lost, and no new connection can be opened.
            BudgetError: The server's time budget is used up before the response's deadline.
        """
        await self._wait_for_turn()
        connection = await self.connect()
        start = time.perf_counter()
        answer: Answer = Timeout(self.deadline)
        seconds_left = self.count_seconds_left()
        with anyio.move_on_after(min(self.deadline, seconds_left)):
            try:
                value = await connection.ask(method, headers=headers, **params)
                seconds = time.perf_counter() - start
                # A value from JSON can have a lone surrogate, which UTF-8 cannot encode.
                answer = Result(value, seconds, len(json.dumps(value, ensure_ascii=False).encode(errors="replace")))
            except MCPError as error:
                if isinstance(error, ConnectError):
                    answer = Disconnect(error.why + connection.quote_log(), error.retry_after, connection.has_ended)
                else:
                    seconds = time.perf_counter() - start
                    answer = ProtocolError(error.code, error.message, error.data, seconds, _find_wait(error))
        if isinstance(answer, Timeout | Disconnect) and connection is self._connection and find_limit(answer) is None:
            if isinstance(answer, Disconnect):
                self._loss = Loss(tuple(self._sent), answer.why, time.monotonic(), tuple(self._requests))
            await self.disconnect()  # a hanging call could block the next ones
        if isinstance(answer, Timeout) and seconds_left < self.deadline:
            raise BudgetError
        return answer


def _find_wait(error: MCPError) -> float | None:
    """Return the seconds until an overloaded HTTP server accepts requests again, or None for other errors."""
    if not isinstance(error, Busy):
        return None
    if error.retry_after is None and error.status == HTTPStatus.TOO_MANY_REQUESTS:
        return DEFAULT_WAIT
    return error.retry_after
