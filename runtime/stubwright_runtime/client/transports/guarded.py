"""A transport of the SDK whose other end may be broken or hostile.

Takes a transport; gives the same, but that what goes wrong in it ends the connection with a reason, and not the
caller's block, and that an answer which cannot be read fails the request that it answers, instead of being passed over
while the caller waits. It understands nothing of what is said.
"""

from __future__ import annotations

import asyncio
import re
from collections import deque
from contextlib import AbstractAsyncContextManager, asynccontextmanager, suppress
from contextvars import copy_context
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final, Self

from ...observability.logs import log
from ...values.json import Json, is_group
from ...values.terminal import to_one_line
from .bounds import MOST_BLOCKS, MOST_QUESTIONS, Bound, Bounds, OpenQuestions, TooLargeError
from .process import ProcessTransport
from .refusals import Refusal
from .renewal import Renewal
from .unreadable import describe_message, describe_syntax

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping
    from contextvars import Context
    from types import TracebackType

    from anyio import CancelScope, Event
    from anyio.abc import TaskGroup, TaskStatus
    from mcp import Client, MCPError
    from mcp.client import Transport
    from mcp.client._transport import ReadStream, TransportStreams, WriteStream
    from mcp.shared.message import SessionMessage
    from mcp_types import JSONRPCError, JSONRPCNotification, RequestId

    from ..observability.telemetry import Telemetry
    from .refusals import Refusals


_ID: Final = re.compile(
    r'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(?:(\d{1,18})|"([^"\\]{1,200})")\s*,\s*(?!"method")'
)
"""The usual start of an answer. Needed only if the whole of it cannot be read."""

_LATE: Final = 1.0
"""Seconds that the end of a connection waits for what is still to be sent."""

_LONGEST_REASON: Final = 300
"""Characters of an error that a message of ours quotes."""


def has_failed(client: Client) -> bool:
    """Tell whether the connection of a client has ended, for a reason that is known here."""
    return isinstance(client.server, SafeTransport) and client.server.failure is not None


def explain(error: MCPError, client: Client) -> MCPError:
    """Return the error itself, or a better explanation: a `ConnectError` if the connection failed.

    Args:
        error: What the SDK raised.
        client: Whose request it was.
    """
    return client.server.explain(error) if isinstance(client.server, SafeTransport) else error


@dataclass(frozen=True, slots=True)
class UnderWay:
    """A request that is under way.

    Attributes:
        item: The request as it is sent.
        method: Its method.
        revision: The revision that it is in.
        bound: The bound of its answer.
        context: The context of its caller, in which it is sent.
        is_sent_again: Whether it was refused before, with a session that the server did not know.
    """

    item: SessionMessage
    method: str
    revision: str
    bound: Bound
    context: Context
    is_sent_again: bool = False


class SafeTransport(AbstractAsyncContextManager["TransportStreams", bool | None]):
    """The transport.

    Attributes:
        over_http: Whether requests have HTTP headers.
        failure: Makes the exception that says why the connection ended; `None` if it did not, or was closed.
        on_notification: Is told of each notification, those that the SDK knows nothing of, too; `None` for nobody.
        questions: The requests of the server that are not answered yet.
    """

    def __init__(
        self,
        transport: Transport | ProcessTransport,
        *,
        refusals: Refusals | None = None,
        address: tuple[str, int] | None = None,
        name: Callable[[], str] | None = None,
        probe_seconds: float | None = None,
    ) -> None:
        """Take a transport that is not open yet.

        Args:
            transport: The transport.
            refusals: Where an HTTP client notes why it has no answer for a request; `None` for any other transport.
            address: The host and the port of the server, where it has them.
            name: Gives the server's name in errors; `None` for a transport that has none.
            probe_seconds: Seconds for the first answer, after which older revisions are tried; `None` for those of the
                SDK, which are also the most.
        """
        self.over_http = refusals is not None
        self.failure: Callable[[], MCPError] | None = None
        self.on_notification: Callable[[JSONRPCNotification], None] | None = None
        self._transport = transport
        self._refusals: Refusals = {} if refusals is None else refusals
        self._process = transport if isinstance(transport, ProcessTransport) else None
        self._bounds = None if self._process is None else self._process.bounds
        if self._process is not None:
            self._process.longest, self._process.too_large = self._longest, self._too_large
        self._renewal = Renewal(self._send_own, self._send_again, self._refuse_session) if self.over_http else None
        self._under_way: dict[RequestId, UnderWay] = {}
        self.questions = OpenQuestions()
        self._unaddressed: str | None = None
        self._address = address
        self._name = name
        self._probe_seconds = probe_seconds
        self._telemetry: Telemetry | None = None
        self._opened = self._open()
        self._reading: _Reading | None = None
        self._writing: _Writing | None = None
        self._late: TaskGroup | None = None

    async def __aenter__(self) -> TransportStreams:
        """Open it."""
        return await self._opened.__aenter__()

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        """Close it."""
        return await self._opened.__aexit__(exc_type, exc_val, exc_tb)

    def receive_item(self, item: SessionMessage | Exception) -> SessionMessage | Exception | None:
        """Return the client's version of an item that came; `None` for nothing."""
        from mcp_types import JSONRPCError, JSONRPCNotification, JSONRPCRequest, JSONRPCResponse

        line = None if self._process is None else self._process.line
        if isinstance(item, Exception):
            item = _answer_unreadable(item)
        if isinstance(item, Exception):
            return item
        if isinstance(item.message, JSONRPCRequest):
            self.questions.add(item.message.id)
        elif isinstance(item.message, JSONRPCNotification):
            if self.on_notification is not None:
                self.on_notification(item.message)
            if item.message.method == "notifications/cancelled" and (cancelled := _cancelled_id(item)) is not None:
                self.questions.cancel(cancelled)
        if isinstance(item.message, JSONRPCError) and item.message.id is None and self._under_way:
            self._take_unaddressed(item.message)
        key = _answered_id(item)
        request = self._under_way.pop("" if key is None else key, None)
        refusal = self._refusals.pop(str(key), None)
        if self._renewal is not None and key is not None:
            if self._renewal.take_answer(key, item, refusal):
                return None
            if request is not None and refusal is not None and refusal.kind == "session_lost":
                if self._renewal.accept(key, request, refusal):
                    self._renew()
                    return None
            elif request is not None and isinstance(item.message, JSONRPCResponse):
                self._renewal.note_success(request, item.message.result)
        if refusal is not None and isinstance(item.message, JSONRPCError):
            item.message.error.data = replace(refusal, data=item.message.error.data)
        if line is not None and not line.is_text:
            return _refuse(item, "it holds bytes that are not UTF-8")
        if self._bounds is not None and line is not None and request is not None:
            try:
                self._bounds.check(line.size, request.bound)
            except TooLargeError as error:
                return _refuse(item, str(error))
        if request is not None:
            from .thinning import thin_if_wrong

            if wrong := _find_crowded(item):
                return _refuse(item, wrong)

            thin_if_wrong(item, request.method, request.revision)
        return item

    def _take_unaddressed(self, error: JSONRPCError) -> None:
        """Keep an error that names no request, to show it if no answer comes; the answers may still be on their way.

        A server that does not know `server/discover` may answer it so, and the handshake of older revisions follows.
        """
        probes = [key for key, request in self._under_way.items() if request.method == "server/discover"]
        if len(self._under_way) == len(probes) == 1:
            error.id = probes[0]
        else:
            self._unaddressed = to_one_line(error.error.message)[:_LONGEST_REASON]

    def record_answer(self, item: SessionMessage | Exception) -> SessionMessage | Exception:
        """Record an item for OpenTelemetry, and return it."""
        from mcp_types import JSONRPCError, JSONRPCResponse

        if self._telemetry is not None and not isinstance(item, Exception):
            key = _answered_id(item)
            if key is not None and isinstance(item.message, JSONRPCResponse | JSONRPCError):
                self._telemetry.record_answer(key, item.message)
        return item

    def record_request(self, item: SessionMessage) -> None:
        """Take note of what the client sends."""
        from mcp.shared.inbound import MCP_PROTOCOL_VERSION_HEADER
        from mcp_types import JSONRPCNotification, JSONRPCRequest
        from mcp_types.version import LATEST_HANDSHAKE_VERSION

        message = item.message
        if isinstance(message, JSONRPCRequest):
            if not self._under_way:
                self._unaddressed = None
            headers: Mapping[str, str] = getattr(item.metadata, "headers", None) or {}
            revision = headers.get(MCP_PROTOCOL_VERSION_HEADER, LATEST_HANDSHAKE_VERSION)
            bound = Bounds(None).find_bound() if self._bounds is None else self._bounds.find_bound()
            self._under_way[message.id] = UnderWay(item, message.method, revision, bound, copy_context())
            if message.method == "server/discover" and self._probe_seconds is not None:
                asyncio.get_running_loop().call_later(self._probe_seconds, self._end_probe, message.id)
            if self._telemetry is not None:
                self._telemetry.record_request(message)
        elif isinstance(message, JSONRPCNotification) and message.method == "notifications/cancelled":
            self._under_way.pop((message.params or {}).get("requestId", ""), None)
            if self._telemetry is not None:
                self._telemetry.record_cancellation(message.params or {})

    def explain(self, error: MCPError) -> MCPError:
        """Return the error itself, or a better explanation of the missing answer."""
        from mcp import MCPError
        from mcp_types import CONNECTION_CLOSED, REQUEST_TIMEOUT

        if isinstance(error.data, Refusal):  # which no server can send
            return error.data.to_error(error)
        if error.code == CONNECTION_CLOSED and self.failure is not None:
            return self.failure()
        if error.code == REQUEST_TIMEOUT and self._unaddressed is not None:
            message = f"{error.message}; it sent an error that names no request: {self._unaddressed}"
            return MCPError(code=REQUEST_TIMEOUT, message=message, data=error.data)
        return error

    def explain_silence(self, error: MCPError, seconds: float | None) -> MCPError:
        """Return a better explanation of a connection that could not be opened for want of an answer.

        Args:
            error: The error that `explain` returned.
            seconds: The time limit of the answer.
        """
        from mcp_types import REQUEST_TIMEOUT

        from ..core.connect_errors import Unreachable

        is_late = any(request.method == "initialize" for request in self._under_way.values())
        if error.code != REQUEST_TIMEOUT or not is_late or seconds is None or self._name is None:
            return error  # a server may answer with this code, too
        why = f"did not answer in {seconds:g} seconds"
        if self._unaddressed is not None:
            why += f"; it sent an error that names no request: {self._unaddressed}"
        shown = () if self._process is None else self._process.log_lines()
        return Unreachable(self._name(), "\n".join([why, *(f"  | {line}" for line in shown)]), code=REQUEST_TIMEOUT)

    def _end_probe(self, key: RequestId) -> None:
        """Answer the probe in the server's place, if it is late."""
        from mcp.shared.message import SessionMessage
        from mcp_types import REQUEST_TIMEOUT, ErrorData, JSONRPCError

        if self._reading is not None and self._under_way.pop(key, None) is not None:
            error = ErrorData(code=REQUEST_TIMEOUT, message="the server did not answer in time")
            self._reading.insert(SessionMessage(JSONRPCError(jsonrpc="2.0", id=key, error=error)))

    def _longest(self) -> Bound:
        """Return the widest bound: which request a message answers is unknown before it is read."""
        bounds = [request.bound.most for request in self._under_way.values()]
        if self._bounds is not None:
            bounds.append(self._bounds.each)
        return Bound(None if None in bounds else max(bound for bound in bounds if bound is not None))

    def _too_large(self, error: TooLargeError) -> None:
        """End the connection at a line that no request allows."""
        for request in self._under_way.values():
            if request.bound.most is not None:
                request.bound.broken = TooLargeError(str(error), error.size, request.bound.most)
        self._end(partial(_make_closed, str(error)))

    @asynccontextmanager
    async def _open(self) -> AsyncGenerator[TransportStreams, None]:
        """Hold the transport in a task of its own, since the SDK would cancel the one that opened it."""
        import anyio

        from ..observability.telemetry import Telemetry

        done = anyio.Event()
        async with anyio.create_task_group() as tasks:
            read, write = await tasks.start(self._hold, done)
            self._reading, self._writing = _Reading(read, self), _Writing(write, self)
            self._telemetry = Telemetry(self._address)
            try:
                async with anyio.create_task_group() as self._late:
                    try:
                        yield self._reading, self._writing
                    finally:
                        self._late.cancel_scope.deadline = anyio.current_time() + _LATE
            finally:
                self._telemetry.record_end(failed=self.failure is not None)
                done.set()

    def send_late(self, send: Callable[[], Awaitable[None]]) -> None:
        """Send a message without an answer as soon as the server takes it, unless the connection ends before."""
        import anyio

        async def pass_on() -> None:
            with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):
                await send()

        if self._late is not None:
            self._late.start_soon(pass_on)

    def hold_back(self, item: SessionMessage) -> bool:
        """Hold a message back if there is no session, and tell whether it was held."""
        from mcp_types import JSONRPCRequest

        renewal, key = self._renewal, _cancelled_id(item)
        if renewal is None:
            return False
        if key is not None:
            return renewal.forget(key)
        if not renewal.is_running or not isinstance(item.message, JSONRPCRequest):
            return False
        renewal.hold(item.message.id, self._under_way.pop(item.message.id))
        return True

    def _renew(self) -> None:
        if self._renewal is not None and self._late is not None and not self._renewal.is_running:
            self._renewal.is_running = True
            self._late.start_soon(self._run_renewal, self._renewal)

    async def _run_renewal(self, renewal: Renewal) -> None:
        import anyio

        with suppress(anyio.BrokenResourceError, anyio.ClosedResourceError):  # the end of the connection says why
            await renewal.run()

    async def _send_own(self, item: SessionMessage) -> None:
        if self._writing is not None:
            await self._writing.send_unseen(item)

    async def _send_again(self, request: UnderWay) -> None:
        """Send a request of a caller, in the context of that caller."""
        from mcp_types import JSONRPCRequest

        message = request.item.message
        if isinstance(message, JSONRPCRequest):
            self._under_way[message.id] = request
        await asyncio.create_task(self._send_own(request.item), context=request.context)

    def _refuse_session(self, request: UnderWay, refusal: Refusal) -> None:
        """Answer a request for which there is no session."""
        from mcp.shared.message import SessionMessage
        from mcp_types import INVALID_REQUEST, ErrorData, JSONRPCError, JSONRPCRequest

        message = request.item.message
        if self._reading is not None and isinstance(message, JSONRPCRequest):
            error = ErrorData(code=INVALID_REQUEST, message=refusal.why, data=refusal)
            self._reading.insert(SessionMessage(JSONRPCError(jsonrpc="2.0", id=message.id, error=error)))

    async def _hold(self, done: Event, *, task_status: TaskStatus[TransportStreams]) -> None:
        is_open = False
        try:
            async with self._transport as streams:
                is_open = True
                task_status.started(streams)
                await done.wait()
        except Exception as error:
            if not is_open:
                raise
            log().warning("the connection ended: %r", error)
            self._end(partial(_make_closed, f"the connection failed: {_find_first(error)!r}"))

    async def note_end(self) -> None:
        """Note the reason why the process ended."""
        if self.failure is None and self._process is not None:
            self.failure = await self._process.explain_end()

    def _end(self, failure: Callable[[], MCPError]) -> None:
        """End the connection, as if the server had."""
        if self.failure is None:
            self.failure = failure
        if self._reading is not None:
            self._reading.end()


class _Reading:
    """The messages from the server."""

    def __init__(self, stream: ReadStream[SessionMessage | Exception], transport: SafeTransport) -> None:
        self._stream = stream
        self._transport_above = transport
        self._scope: CancelScope | None = None
        self._ended = False
        self._inserted: deque[SessionMessage] = deque()

    @property
    def last_context(self) -> Any:
        """The context of the last message, if the stream knows it."""
        return getattr(self._stream, "last_context", None)

    def end(self) -> None:
        """End the stream: nothing will come any more."""
        self._ended = True
        if self._scope is not None:
            self._scope.cancel()

    async def receive(self) -> SessionMessage | Exception:
        import anyio

        while not self._ended:
            if self._inserted:
                return self._transport_above.record_answer(self._inserted.popleft())
            # `end` and `insert` cancel it to wake this receiver.
            with anyio.CancelScope() as self._scope:
                if self._transport_above.questions.count >= MOST_QUESTIONS:
                    await self._transport_above.questions.wait_for_room()
                try:
                    item = await self._stream.receive()
                except anyio.EndOfStream:
                    await self._transport_above.note_end()
                    raise
                received = self._transport_above.receive_item(item)
                if received is not None:
                    return self._transport_above.record_answer(received)
        raise anyio.EndOfStream

    def insert(self, item: SessionMessage) -> None:
        """Insert a message that the server did not send as the next one."""
        self._inserted.append(item)
        if self._scope is not None:
            self._scope.cancel()

    async def aclose(self) -> None:
        await self._stream.aclose()

    def __aiter__(self) -> Self:
        return self

    async def __anext__(self) -> SessionMessage | Exception:
        import anyio

        try:
            return await self.receive()
        except anyio.EndOfStream:
            raise StopAsyncIteration from None

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(exc_type, exc_val, exc_tb)


class _Writing:
    """The messages to the server."""

    def __init__(self, stream: WriteStream[SessionMessage], transport: SafeTransport) -> None:
        self._stream = stream
        self._transport_above = transport

    async def send(self, item: SessionMessage, /) -> None:
        from mcp_types import JSONRPCError, JSONRPCResponse

        self._transport_above.record_request(item)
        if self._transport_above.hold_back(item):
            return
        if _cancelled_id(item) is not None:  # the SDK would wait seconds for it, beyond the time of the request
            self._transport_above.send_late(partial(self._stream.send, item))
            return
        try:
            await self._stream.send(item)
        finally:
            if isinstance(item.message, JSONRPCResponse | JSONRPCError) and item.message.id is not None:
                self._transport_above.questions.remove(item.message.id)

    async def send_unseen(self, item: SessionMessage) -> None:
        """Send a message that no caller asked for, or that was recorded before."""
        await self._stream.send(item)

    async def aclose(self) -> None:
        await self._stream.aclose()

    async def __aenter__(self) -> Self:
        await self._stream.__aenter__()
        return self

    async def __aexit__(
        self, exc_type: type[BaseException] | None, exc_val: BaseException | None, exc_tb: TracebackType | None
    ) -> bool | None:
        return await self._stream.__aexit__(exc_type, exc_val, exc_tb)


def _make_closed(why: str) -> MCPError:
    from mcp import MCPError
    from mcp_types import CONNECTION_CLOSED

    return MCPError(code=CONNECTION_CLOSED, message=why)


def _find_first(error: BaseException) -> BaseException:
    while is_group(error):
        error = error.exceptions[0]
    return error


def _answered_id(item: SessionMessage) -> RequestId | None:
    """Return the id of the request that a message answers, by the number that we gave it."""
    from mcp.shared.dispatcher import coerce_request_id
    from mcp_types import JSONRPCError, JSONRPCResponse

    if isinstance(item.message, JSONRPCResponse | JSONRPCError) and item.message.id is not None:
        # A server may send the number back as text, which the SDK takes, too.
        return coerce_request_id(item.message.id)
    return None


def _cancelled_id(item: SessionMessage) -> RequestId | None:
    """Return the request whose answer is wanted no longer, as a message says."""
    from mcp_types import JSONRPCNotification

    if isinstance(item.message, JSONRPCNotification) and item.message.method == "notifications/cancelled":
        key = (item.message.params or {}).get("requestId")
        return key if isinstance(key, int | str) else None
    return None


def _find_crowded(item: SessionMessage) -> str | None:
    """Return the problem of a result with too many parts, before each becomes an object; `None` if it has none."""
    from mcp_types import JSONRPCResponse

    if isinstance(item.message, JSONRPCResponse):
        for key in ("content", "contents", "messages"):
            blocks: Json = item.message.result.get(key)
            if isinstance(blocks, list) and len(blocks) > MOST_BLOCKS:
                return f"its {key!r} has {len(blocks):,} entries, more than {MOST_BLOCKS:,}"
    return None


def _refuse(item: SessionMessage, wrong: str) -> SessionMessage | Exception:
    """Return an error in place of an answer; what answers nothing is passed over, as everything unreadable is."""
    key = _answered_id(item)
    return ValueError(f"a message of the server was passed over: {wrong}") if key is None else _make_error(key, wrong)


def _answer_unreadable(error: Exception) -> SessionMessage | Exception:
    """Return an error in place of what is not a JSON-RPC message, if it says which request it means to answer."""
    from pydantic import ValidationError

    if not isinstance(error, ValidationError):
        return error
    problems = error.errors(include_url=False, include_context=False)
    for problem in problems:
        received: Json = problem["input"]
        if isinstance(received, str) and (match := _ID.match(received)):
            return _make_error(int(match[1]) if match[1] else match[2], describe_syntax(received, problem["msg"]))
        if isinstance(received, dict) and ("method" not in received or received.keys() & {"result", "error"}):
            key = received.get("id")
            if isinstance(key, str | int) and not isinstance(key, bool):
                return _make_error(key, describe_message(received, error))
    return error


def _make_error(key: RequestId, wrong: str) -> SessionMessage:
    from mcp.shared.message import SessionMessage
    from mcp_types import PARSE_ERROR, ErrorData, JSONRPCError

    message = f"the server's answer cannot be read: {wrong}"
    return SessionMessage(JSONRPCError(jsonrpc="2.0", id=key, error=ErrorData(code=PARSE_ERROR, message=message)))
