"""The current request, independent of its transport.

Few requests need a channel, questions or cancellation, so these are created on first use.
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
    """Sends messages to a request's client."""

    @property
    def capabilities(self) -> Mapping[str, Any] | None:
        """The client's declared capabilities, in their wire format."""

    @property
    def client(self) -> tuple[str, str] | None:
        """The name and version of the client."""

    async def request(self, method: str, params: Mapping[str, Any] | None, /) -> Mapping[str, Any]:
        """Send a request to the client on this request's stream and return its result.

        Raises:
            ProtocolError: The client responded with an error or is not connected.
            InvalidAnswer: The response is not a result of this method.
        """
        ...

    async def record_elicitation(self, elicitation: str) -> None:
        """Record that the client was asked to open a URL."""

    async def complete_elicitation(self, elicitation: str) -> bool:
        """Notify the client that a URL elicitation is complete; return whether it was notified."""
        ...

    async def send_progress(self, done: float, total: float | None, message: str | None) -> None:
        """Send a progress notification, if the client requested progress."""

    async def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        """Send a log message, if the client accepts its level."""

    async def subscribe(self, uri: str) -> None:
        """Subscribe the client to changes of a resource (MCP 2025-11-25 and earlier)."""

    async def release(self) -> None:
        """Close the response stream if the client can reconnect."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The client of an HTTP request, for telemetry.

    Attributes:
        address: The host and port; `None` if unknown.
        session: The session ID; `None` without a session.
        http_version: The HTTP version, such as `1.1`.
    """

    address: tuple[str, int] | None
    session: str | None
    http_version: str


class CallLimits(Protocol):
    """The limits on one call."""

    def suspend(self) -> AbstractAsyncContextManager[None]:
        """Suspend the limits during the block: stop the timeout and free the concurrency slot."""
        ...

    def hold(self) -> Callable[[], None]:
        """Hold the concurrency slot until the returned function is called, from any thread."""
        ...


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class Request(Scope):
    """One message.

    Attributes:
        method: The method, such as `tools/call`.
        id: The JSON-RPC ID; `None` for a notification.
        params: The unchanged parameters; an empty object if absent.
        revision: The MCP revision.
        transport: The transport.
        threads: The thread pool for plain `def` handlers.
        open_channel: Returns the channel to the client.
        call_next: Handles lifecycle requests and refuses invalid and unknown ones.
        is_admissible: True if the message is valid, and allowed in the current state of its connection.
        traceparent: The `traceparent` header of an HTTP request.
        peer: The HTTP client, if telemetry observes the server.
        principal: The caller.
        tools: The tool names in its toolsets; `None` for all tools.
        record: The record of the call; `None` if calls are neither recorded nor traced.
        task: The asyncio task that handles the request.
        is_cancelled: True after a cancellation.
        has_ended: True if the request can no longer be cancelled.
        limits: The limits on the call, if any.
        running: The name of the running handler method.
        patience: The maximum seconds to wait for a thread; by default the pool's.
        progress: The last progress sent.
        rounds: The questions and answers (`InputRequests`); `None` before the first question.
        arguments: The arguments of the call; empty if absent.
        size: The size of the arguments as JSON, in bytes; `None` if they are not JSON.
        errors: Argument errors that the schema cannot find: arguments sent under both an old and a new name.
        is_answer: True if the request answers the questions of a call (MCP 2026-07-28 and later).
        begin: Starts a task instead of running the handler.
        task_id: The ID of the task that runs the call; `None` outside a task.
        attempt: The number of this run of the task, from 1; 1 outside a task.
        page: The requested page.
        handles: The state handles of the call.
        has_begun: True if the handler has been called.
        outlives_client: True if the call continues after its client disconnects, because a repeated call gets its
            result.
        once_key: The digest of the caller, the tool and the key, if the tool's policy has `once`.
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
    errors: Sequence[str] = ()
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
        """True if the transport is HTTP."""
        return self.transport == "http"

    @property
    def channel(self) -> Channel:
        """The channel to the client, opened on first use."""
        if self._channel is None:
            self._channel = self.open_channel(self)
        return self._channel

    @property
    def cancellation(self) -> Cancellation:
        """The functions to call on cancellation."""
        if self._cancellation is None:
            self._cancellation = Cancellation()
        return self._cancellation

    @property
    def call_id(self) -> str:
        """The call's unique ID in the log, in the record and for the caller."""
        if self.record is not None:
            return self.record.id
        if self._call_id is None:
            self._call_id = secrets.token_hex(8)
        return self._call_id

    def close(self) -> None:
        """Release the message and break cycles, because a task's connection can retain the request for hours."""
        self.has_ended = True
        self.params = self.arguments = {}
        self._channel = self.rounds = None

    def cancel(self) -> None:
        """Cancel the request; if it has no asyncio task yet, it checks `is_cancelled` when it starts."""
        if not self.has_ended:
            self.is_cancelled = True
            if self.task is not None:
                self.task.cancel()

    def pause(self) -> AbstractAsyncContextManager[None]:
        """Suspend the call's limits during the block, which waits for the user."""
        return nullcontext() if self.limits is None else self.limits.suspend()

    async def run_in_thread(self, function: Callable[[], Any]) -> Any:
        """Run a function in a thread, which holds the concurrency slot until it finishes. Raises NoFreeThreadError."""
        if self.threads is None:
            raise RuntimeError("the request has no thread pool")
        if self._cancellation is None:  # otherwise the thread and the event loop could each create the state
            self._cancellation = Cancellation()
        hold = None if self.limits is None else self.limits.hold
        return await self.threads.run(self.running, function, patience=self.patience, hold=hold)


Answer: TypeAlias = Callable[[Request], Awaitable[Result]]
"""Returns the result of a message or raises ProtocolError."""

Handle: TypeAlias = Callable[[Request], Awaitable["Outcome"]]
"""Returns the outcome of a call to one tool."""

Wrap: TypeAlias = Callable[["Tool", Handle], Handle]
"""Wraps a tool's function in a step; returns it unchanged if the tool does not declare the step."""


def find_request() -> Request | None:
    """Return the current request; `None` outside a request."""
    scope = SCOPE.get()
    return scope if isinstance(scope, Request) else None
