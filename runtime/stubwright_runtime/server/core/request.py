"""One message that is being answered, over any transport, with everything that the parts of a server need.

Transports make requests. Most are answered without their channel, questions, cancellation or progress, so each of these
is made when it is first read.
"""

from __future__ import annotations

import math
import secrets
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from ...observability.scope import SCOPE, Scope
from ..execution.cancellation import Cancellation
from .principal import ANONYMOUS, Principal

if TYPE_CHECKING:
    import asyncio
    from contextlib import AbstractAsyncContextManager

    from ...mcp.revisions import Revision
    from ...mcp.vocabulary import LogLevel
    from ...package import Tool
    from ..execution.threads import Threads
    from .call_state import CallState, Transport
    from .outcomes import Outcome

Result: TypeAlias = Mapping[str, Any] | None
"""The result of a message in its wire format; `None` for a notification."""


class Channel(Protocol):
    """The way to the caller of one request."""

    @property
    def capabilities(self) -> Mapping[str, Any] | None:
        """The capabilities that the client declared, as they go on the wire."""

    @property
    def client(self) -> tuple[str, str] | None:
        """The name and the version that the client program reports."""

    async def request(self, method: str, params: Mapping[str, Any] | None, /) -> Mapping[str, Any]:
        """Send a request to the client, on the stream of the request that it belongs to.

        Raises:
            ProtocolError: The client answers with an error, or cannot be asked.
            InvalidAnswer: The answer is not a result of this method.
        """
        ...

    async def record_elicitation(self, elicitation: str) -> None:
        """Remember that the client was asked to open a URL."""

    async def complete_elicitation(self, elicitation: str) -> bool:
        """Tell the client that all is done at a URL."""
        ...

    async def send_progress(self, done: float, total: float | None, message: str | None) -> None:
        """Send a progress notification, if the caller asked for them."""

    async def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        """Send a log message, if the caller wants messages of this level."""

    async def subscribe(self, uri: str) -> None:
        """Tell the caller's connection of changes of a resource, up to 2025-11-25."""

    async def release(self) -> None:
        """Close the stream that carries the response, if the caller can come back for it."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The sender of a message over HTTP, as telemetry describes it.

    Attributes:
        address: Its host and port; `None` if the server does not know them.
        session: The id of its session; `None` if there is none.
        http_version: The version of HTTP that it speaks, such as `1.1`.
    """

    address: tuple[str, int] | None
    session: str | None
    http_version: str


class CallLimits(Protocol):
    """The limits of one call."""

    def suspend(self) -> AbstractAsyncContextManager[None]:
        """Wait for a person during the block: the clock stops, and the place is free."""
        ...

    def hold(self) -> Callable[[], None]:
        """Keep the place until the returned function is called, which any thread may do."""
        ...


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class Request(Scope):
    """One message.

    Attributes:
        method: The method, such as `tools/call`.
        id: The JSON-RPC id; `None` for a notification.
        params: The unchanged parameters; an empty object without any.
        revision: The revision that the sender speaks.
        transport: The transport that it came over.
        threads: The pool of threads for plain `def` methods of the handlers.
        open_channel: Returns the channel to its sender.
        call_next: Answers a message that no part of the server serves, or refuses an inadmissible one.
        is_admissible: True if it is valid, and its sender may send it now.
        traceparent: The header `traceparent` of a request over HTTP.
        peer: The sender over HTTP, if telemetry observes the server.
        principal: The caller.
        tools: The names of the tools of its toolset; `None` for all tools.
        record: The record of the call; `None` if calls are neither recorded nor traced.
        task: The asyncio task that answers it.
        is_cancelled: True if its result is not wanted any more.
        has_ended: True if it can no longer be cancelled.
        limits: The limits of the call, if there are any.
        running: The method of the handlers that runs.
        patience: Seconds that it may wait for a thread; by default the pool's.
        progress: The progress that its caller was last told.
        rounds: The questions so far and their answers, of the class `InputRequests`; `None` before the first.
        arguments: The arguments of the call; absent arguments are an empty object.
        size: The bytes of these as JSON; `None` if they are not JSON.
        faults: Faults of the arguments apart from their schema: a line for each that came twice.
        is_answer: True if it continues a call that asked a question, from 2026-07-28 on.
        begin: Makes a task of the call in place of running the handler.
        task_id: The id of the task in which the call goes on; `None` outside of tasks.
        attempt: The number of the run of that task, from 1; 1 outside of tasks.
        page: The page of a list that the call asks for.
        handles: The state handles of the call.
        has_begun: True if the handler has been called.
        outlives_client: True if it goes on when its client leaves, since a repeated call gets its result.
        once_key: The digest of its caller, its tool and its key, if the tool's policy has `once`.
    """

    method: str
    id: str | int | None
    params: Mapping[str, Any]
    revision: Revision
    transport: Transport
    threads: Threads | None
    open_channel: Callable[[Any], Channel]
    call_next: Answer
    is_admissible: bool = True
    traceparent: str | None = None
    peer: Peer | None = None
    principal: Principal = ANONYMOUS
    tools: frozenset[str] | None = None
    record: CallState | None = None
    task: asyncio.Task[Any] | None = None
    is_cancelled: bool = False
    has_ended: bool = False
    limits: CallLimits | None = None
    running: str = ""
    patience: float | None = None
    progress: float = -math.inf
    rounds: Any = None
    arguments: Mapping[str, Any] = field(default_factory=dict)
    size: int | None = None
    faults: Sequence[str] = ()
    is_answer: bool = False
    begin: Handle | None = None
    task_id: str | None = None
    attempt: int = 1
    page: Any = None
    handles: Any = None
    has_begun: bool = False
    outlives_client: bool = False
    once_key: str | None = None
    _channel: Channel | None = None
    _cancellation: Cancellation | None = None
    _call_id: str | None = None

    @property
    def over_http(self) -> bool:
        """True if it came over HTTP."""
        return self.transport == "http"

    @property
    def channel(self) -> Channel:
        """The channel to its sender, opened when it is first read."""
        if self._channel is None:
            self._channel = self.open_channel(self)
        return self._channel

    @property
    def cancellation(self) -> Cancellation:
        """The functions to call when it is cancelled."""
        if self._cancellation is None:
            self._cancellation = Cancellation()
        return self._cancellation

    @property
    def call_id(self) -> str:
        """The unique id of the call in the log, in the record and for the caller."""
        if self.record is not None:
            return self.record.id
        if self._call_id is None:
            self._call_id = secrets.token_hex(8)
        return self._call_id

    def close(self) -> None:
        """Let go of what holds the message, or the request itself: a task's connection may keep it for hours."""
        self.has_ended = True
        self.params = self.arguments = {}
        self._channel = self.rounds = None

    def cancel(self) -> None:
        """End it, since its result is not wanted. A request without a task yet looks at `is_cancelled`."""
        if not self.has_ended:
            self.is_cancelled = True
            if self.task is not None:
                self.task.cancel()

    def pause(self) -> AbstractAsyncContextManager[None]:
        """Wait for a person during the block: the clock of the call stops, and its place is free."""
        return nullcontext() if self.limits is None else self.limits.suspend()

    async def run_in_thread(self, function: Callable[[], Any]) -> Any:
        """Run a function in a thread, which keeps the place of the call until it ends. Raises NoFreeThreadError."""
        if self.threads is None:
            raise RuntimeError("the request has no pool of threads")
        if self._cancellation is None:  # the thread and the event loop might make one each
            self._cancellation = Cancellation()
        hold = None if self.limits is None else self.limits.hold
        return await self.threads.run(self.running, function, patience=self.patience, hold=hold)


Answer: TypeAlias = Callable[[Request], Awaitable[Result]]
"""Gives the result of a message, or raises ProtocolError."""

Handle: TypeAlias = Callable[[Request], Awaitable["Outcome"]]
"""Gives the outcome of a call of one tool."""

Wrap: TypeAlias = Callable[["Tool", Handle], Handle]
"""Adds a step around the calls of a tool; returns them unchanged if the tool does not declare it."""


def find_request() -> Request | None:
    """Return the request that is being answered; `None` outside of requests."""
    scope = SCOPE.get()
    return scope if isinstance(scope, Request) else None
