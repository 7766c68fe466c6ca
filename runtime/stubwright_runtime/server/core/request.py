"""A message in progress, independent of its transport.

Few messages need a channel, questions or cancellation callbacks, so these are created on first use.
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
    from .feature import Scopes
    from .lists import PrimitiveList
    from .outcomes import Outcome

Result: TypeAlias = Mapping[str, Any] | None
"""A message's result in its wire format; `None` for a notification."""


class Channel(Protocol):
    """Sends messages to the client that sent a request."""

    @property
    def capabilities(self) -> Mapping[str, Any] | None:
        """The capabilities that the client declared, in their wire format."""

    @property
    def client(self) -> tuple[str, str] | None:
        """The client's name and version."""

    async def request(self, method: str, params: Mapping[str, Any] | None, /) -> Mapping[str, Any]:
        """Send a request to the client on the same stream, and return the client's result.

        Raises:
            ProtocolError: The client responded with an error or is not connected.
            InvalidAnswer: The client's response is not a result of `method`.
        """
        ...

    async def record_elicitation(self, elicitation: str) -> None:
        """Record a URL elicitation that was sent, so that its completion can be reported to this client."""

    async def complete_elicitation(self, elicitation: str) -> bool:
        """Notify the client that a URL elicitation is complete. Return whether the client was notified."""
        ...

    async def send_progress(self, done: float, total: float | None, message: str | None) -> None:
        """Send a progress notification, if the client requested progress."""

    async def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        """Send a log message, if the client accepts its level."""

    async def subscribe(self, uri: str) -> None:
        """Subscribe the client to changes of a resource (MCP 2025-11-25 and earlier)."""

    async def release(self) -> None:
        """Close the response stream, if the client can reconnect to it."""


@dataclass(frozen=True, slots=True)
class Peer:
    """The client of an HTTP request, as telemetry shows it.

    Attributes:
        address: The client's host and port; `None` if unknown.
        session: The session ID; `None` if the request has no session.
        http_version: The HTTP version, such as `1.1`.
    """

    address: tuple[str, int] | None
    session: str | None
    http_version: str


class CallLimits(Protocol):
    """A call's timeout and concurrency slot."""

    def suspend(self) -> AbstractAsyncContextManager[None]:
        """Stop the timeout and free the concurrency slot during the block."""
        ...

    def hold(self) -> Callable[[], None]:
        """Keep the concurrency slot until the returned function is called, from any thread."""
        ...


@dataclass(slots=True, eq=False, repr=False, kw_only=True)
class Request(Scope):
    """One message from a client, and the state of handling it.

    Attributes:
        method: The MCP method, such as `tools/call`.
        id: The JSON-RPC ID; `None` for a notification.
        params: The parameters as the client sent them; an empty object if absent.
        revision: The MCP revision of the message.
        transport: How the message arrived.
        threads: The thread pool for plain `def` handlers.
        open_channel: Creates the channel to the client; called with the request.
        call_next: Handles lifecycle messages, and raises an error for invalid and unknown messages.
        is_admissible: True if the message is valid, and allowed in its connection's current state.
        traceparent: The `traceparent` header of an HTTP request.
        peer: The HTTP client; `None` unless telemetry is enabled.
        principal: The caller.
        tools: The names of the tools in the request's toolsets; `None` for all tools.
        record: What the audit log and telemetry record; `None` if both are disabled.
        task: The asyncio task that handles the request.
        is_cancelled: True once the client has cancelled the request.
        has_ended: True once the request can no longer be cancelled.
        limits: The call's timeout and concurrency slot, if any.
        running: The name of the handler method that runs.
        patience: The maximum time to wait for a thread, in seconds; `None` for the pool's default.
        progress: The last progress that was sent.
        rounds: The questions and answers (`InputRequests`); `None` before the first question.
        is_suspended: True once a question has ended the handler's run; coroutines of the handler may still run.
        arguments: The arguments of a tool call; empty if absent.
        size: The size of the arguments as JSON, in bytes; `None` if they are not JSON.
        errors: Argument errors that no schema can express: arguments sent under both an old and a new name.
        is_answer: True if the request answers an earlier request's questions (MCP 2026-07-28 and later).
        begin: Starts a task instead of running the handler; `None` unless the client requested a task.
        task_id: The ID of the task that this call runs; `None` outside a task.
        attempt: The number of this run of the task, from 1; 1 outside a task.
        page: The page that a call of a paginated tool requests.
        handles: The state handles that the call uses.
        has_begun: True once the handler has been called.
        outlives_client: True if the call continues after its client disconnects, because a repeated call can fetch the
            result.
        once_key: A digest of the caller, the tool and the caller's key, if the tool's policy has `once`.
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
    is_suspended: bool = False
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
        """True if the message arrived over HTTP."""
        return self.transport == "http"

    @property
    def channel(self) -> Channel:
        """The channel to the client, created on first use."""
        if self._channel is None:
            self._channel = self.open_channel(self)
        return self._channel

    @property
    def cancellation(self) -> Cancellation:
        """The callbacks to run when the request is cancelled."""
        if self._cancellation is None:
            self._cancellation = Cancellation()
        return self._cancellation

    @property
    def call_id(self) -> str:
        """The call's unique ID, which the log, the audit record and the caller's error message contain."""
        if self.record is not None:
            return self.record.id
        if self._call_id is None:
            self._call_id = secrets.token_hex(8)
        return self._call_id

    def reaches(self, entries: PrimitiveList, key: str, scopes: Scopes | None) -> bool:
        """Return whether an entry is visible, in the request's toolsets, and permitted by the caller's scopes."""
        if key not in entries.visible or (entries.name == "tools" and self.tools is not None and key not in self.tools):
            return False
        return scopes is None or scopes.allows(self.principal, entries.name, key)

    def close(self) -> None:
        """Release the message's data and break reference cycles.

        The connection of a task can retain the request for hours.
        """
        self.has_ended = True
        self.params = self.arguments = {}
        self._channel = self.rounds = None

    def cancel(self) -> None:
        """Cancel the request, unless it has ended.

        A request that has no asyncio task yet checks `is_cancelled` when it starts.
        """
        if not self.has_ended:
            self.is_cancelled = True
            if self.task is not None:
                self.task.cancel()

    def pause(self) -> AbstractAsyncContextManager[None]:
        """Suspend the call's limits during the block, for example while the user answers a question."""
        return nullcontext() if self.limits is None else self.limits.suspend()

    async def run_in_thread(self, function: Callable[[], Any]) -> Any:
        """Run a function in a pool thread. Raises NoFreeThreadError.

        The call's concurrency slot stays occupied until the function returns, even after a cancellation.
        """
        if self.threads is None:
            raise RuntimeError("cannot run a plain `def`: the request has no thread pool")
        if self._cancellation is None:  # created now, because the thread and the event loop might both create one
            self._cancellation = Cancellation()
        hold = None if self.limits is None else self.limits.hold
        return await self.threads.run(self.running, function, patience=self.patience, hold=hold)


Answer: TypeAlias = Callable[[Request], Awaitable[Result]]
"""Returns a message's result or raises ProtocolError."""

Handle: TypeAlias = Callable[[Request], Awaitable["Outcome"]]
"""Returns the outcome of a call to a specific tool."""

Wrap: TypeAlias = Callable[["Tool", Handle], Handle]
"""Wraps a tool's function in a step, or returns the function unchanged if the tool does not need the step."""


def find_request() -> Request | None:
    """Return the current request; `None` if no request is being handled."""
    scope = SCOPE.get()
    return scope if isinstance(scope, Request) else None
