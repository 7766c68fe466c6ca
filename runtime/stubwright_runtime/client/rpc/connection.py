"""JSON-RPC 2.0 over one transport: requests, responses and notifications in both directions.

A malformed response fails only its own request. Any other malformed message is logged and skipped.
"""

from __future__ import annotations

import asyncio
import itertools
import math
import re
import sys
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeGuard

from mcp_types import (
    CONNECTION_CLOSED,
    INTERNAL_ERROR,
    INVALID_PARAMS,
    PARSE_ERROR,
    REQUEST_TIMEOUT,
)
from mcp_types.version import LATEST_HANDSHAKE_VERSION
from pydantic import ValidationError
from pydantic_core import from_json

from ...observability.logs import log, redact_text
from ...values.modules import is_observed
from ...values.terminal import to_one_line
from ..transports.batches import find_excess
from ..transports.bounds import MOST_QUESTIONS, Bound, Bounds, TooLargeError
from ..transports.unreadable import UnreadableError, check_message, describe_syntax, is_sound, parse_object
from .mcp_error import MCPError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Mapping

    from mcp_types import JSONRPCNotification, RequestId

    from ..core.options import ProgressCallback
    from ..observability.telemetry import Telemetry

_ID: Final = re.compile(
    r'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(?:(\d{1,18})|"([^"\\]{1,200})")\s*,\s*(?!"method")'
)
"""The usual start of a response, used to find the ID if the rest is malformed."""

_SHOWN: Final = 200
"""The maximum length of a malformed line in the log, in characters."""

_LONGEST_REASON: Final = 300
"""The maximum length of a quoted error."""

_LATE_ANSWER: Final = "the server did not respond"
"""The start of the message for a timeout."""

_LATE: Final = 1.0
"""Seconds to spend sending queued notifications when the connection closes."""

_SUBSCRIPTION: Final = "io.modelcontextprotocol/subscriptionId"
"""The `_meta` key for the subscription ID (MCP 2026-07-28, basic/utilities/subscriptions)."""

_DIGITS: Final = re.compile(r"-?(?:0|[1-9][0-9]*)\Z")


class Transport(Protocol):
    """A transport for messages to and from a server.

    Attributes:
        over_http: Whether requests have HTTP headers.
        name: The server's name in errors.
    """

    over_http: bool

    @property
    def name(self) -> str:
        """The server's name."""
        ...

    async def open(self, connection: RpcConnection) -> None:
        """Open the transport. The transport passes incoming messages to `connection.receive`."""

    async def send(self, message: Mapping[str, Any], headers: Mapping[str, str] | None = None, /) -> None:
        """Send a message. Over HTTP, the request also contains `headers`."""

    def resume(self) -> None:
        """Resume delivering messages when the connection has room again."""

    async def close(self, seconds: float, /) -> None:
        """Close the transport within `seconds`."""

    def log_lines(self) -> tuple[str, ...]:
        """Return the first and last lines that the server has logged so far."""
        ...


class _PendingRequest:
    __slots__ = ("answer", "bound", "method", "on_progress")

    def __init__(
        self, method: str, answer: asyncio.Future[dict[str, Any]], bound: Bound, on_progress: ProgressCallback | None
    ) -> None:
        self.method = method
        self.answer = answer
        self.bound = bound
        self.on_progress = on_progress

    def fail(self, error: MCPError) -> None:
        if not self.answer.done():
            self.answer.set_exception(error)


class RpcConnection:
    """A JSON-RPC connection.

    Attributes:
        over_http: Whether requests have HTTP headers.
        revision: The negotiated protocol revision.
        failure: Creates the exception that explains why the connection failed; `None` if it has not failed.
        on_notification: Called with each notification, of any method.
        listeners: Callbacks for subscription notifications, keyed by the subscription request's ID.
        unreadable: The number of malformed messages so far.
        has_answered: Whether any message has arrived.
        unaddressed: The last error response without an ID, shortened, or `None`.
    """

    def __init__(
        self,
        transport: Transport,
        bounds: Bounds,
        answer: Callable[[RequestId, str, dict[str, Any] | None], Awaitable[dict[str, Any]]],
        notify: Callable[[str, dict[str, Any] | None], Coroutine[Any, Any, None]],
        address: tuple[str, int] | None = None,
        read: Callable[[str, dict[str, Any], int], dict[str, Any]] | None = None,
    ) -> None:
        """Prepare a connection; `open` connects it.

        Args:
            transport: The transport, not open yet.
            bounds: The size limits for incoming messages.
            answer: Returns the result for a server request, given its ID, method and parameters.
            notify: Handles a notification, given its method and parameters.
            address: The server's host and port for telemetry, or `None` for a command.
            read: Normalizes a result, given the method, the result and the message size. May raise UnreadableError.
        """
        self.over_http = transport.over_http
        self.transport = transport
        self.revision = LATEST_HANDSHAKE_VERSION
        self.failure: Callable[[], MCPError] | None = None
        self.on_notification: Callable[[JSONRPCNotification], None] | None = None
        self.listeners: dict[RequestId, Callable[[str, dict[str, Any]], None]] = {}
        self.unreadable = 0
        self.has_answered = False
        self.bounds = bounds
        self.unaddressed: str | None = None
        self._answer = answer
        self._notify = notify
        self._address = address
        self._read = read
        self._keys = itertools.count(1)
        self._pending: dict[RequestId, _PendingRequest] = {}
        self._answering: dict[asyncio.Task[None], RequestId] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._late: set[asyncio.Task[None]] = set()
        self._unsent: set[RequestId] = set()
        self._is_open = False
        self._room = asyncio.Event()
        self._telemetry: Telemetry | None = None

    async def open(self) -> None:
        """Open the transport; raises the transport's exceptions."""
        await self.transport.open(self)
        self._is_open = True
        if is_observed():
            from ..observability.telemetry import Telemetry

            self._telemetry = Telemetry(self._address)

    async def close(self, seconds: float | None = None) -> None:
        """Close the transport, after waiting at most a second for notifications to be sent and handled.

        Args:
            seconds: The time limit for closing; `None` for the transport's own limits.
        """
        end = asyncio.get_running_loop().time() + (math.inf if seconds is None else seconds)
        self._is_open = False
        for task in self._answering:
            task.cancel()
        self._fail_all(lambda: MCPError(code=CONNECTION_CLOSED, message="the connection was closed"))
        try:
            if late := {*self._late, *self._tasks} - {asyncio.current_task()}:
                await asyncio.wait(late, timeout=_LATE if seconds is None else min(_LATE, seconds / 3))
        finally:
            for task in (*self._late, *self._tasks):
                task.cancel()
            try:
                await self.transport.close(end - asyncio.get_running_loop().time())
            finally:
                if self._telemetry is not None:
                    self._telemetry.record_end(failed=self.failure is not None)

    def request(
        self,
        method: str,
        params: dict[str, Any] | None = None,
        *,
        key: RequestId | None = None,
        seconds: float | None = None,
        on_progress: ProgressCallback | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Coroutine[Any, Any, dict[str, Any]]:
        """Send a request and return its result.

        Args:
            method: The method.
            params: The parameters.
            key: The request ID; by default the next number.
            seconds: The timeout; `None` for no timeout.
            on_progress: Called with progress notifications.
            headers: Additional HTTP headers.

        Raises:
            MCPError: The server responds with an error or times out.
        """
        if self.failure is not None:
            raise self.failure()
        if not self._is_open:
            raise MCPError(code=CONNECTION_CLOSED, message="the connection is closed")
        if key is None:
            key = next(self._keys)
        if not self._pending:
            self.unaddressed = None
        params = params or {}
        if on_progress is not None:
            params = {**params, "_meta": {**(params.get("_meta") or {}), "progressToken": key}}
        if self._telemetry is None:
            return self._ask(key, method, params, seconds, on_progress, headers)
        return self._ask_observed(self._telemetry, key, method, params, seconds, on_progress, headers)

    async def _ask_observed(
        self, telemetry: Telemetry, key: RequestId, method: str, params: dict[str, Any], *rest: Any
    ) -> dict[str, Any]:
        with telemetry.observe(key, method, params) as observed:
            return await self._ask(key, method, observed, *rest)

    async def _ask(
        self,
        key: RequestId,
        method: str,
        params: dict[str, Any],
        seconds: float | None,
        on_progress: ProgressCallback | None,
        headers: Mapping[str, str] | None,
    ) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        pending = _PendingRequest(method, loop.create_future(), self.bounds.find_bound(), on_progress)
        self._pending[key] = pending
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": key, "method": method}
        if params:
            message["params"] = params
        limit = None if seconds is None else asyncio.timeout(seconds)
        try:
            if limit is None:
                await self.transport.send(message, headers)
                return await pending.answer
            async with limit:
                await self.transport.send(message, headers)
                return await pending.answer
        except MCPError as error:
            if pending.answer.done():  # the server's response, which might quote a secret argument
                error.error.message = redact_text(error.error.message)
            raise
        except asyncio.CancelledError:
            self._cancel(key, method, "the caller was cancelled")
            raise
        except TimeoutError:
            if limit is None or not limit.expired():
                raise
            self._cancel(key, method, f"timed out after {seconds:g} s")
            raise self._make_late(seconds) from None
        finally:
            if self._pending.get(key) is pending:
                del self._pending[key]
            if pending.answer.done() and not pending.answer.cancelled():
                pending.answer.exception()  # asyncio logs exceptions that are never retrieved
            del pending

    def _make_late(self, seconds: float | None) -> MCPError:
        return self.explain_late(MCPError(code=REQUEST_TIMEOUT, message=f"{_LATE_ANSWER} within {seconds:g} seconds"))

    def explain_late(self, error: MCPError) -> MCPError:
        """Return a timeout error that quotes the last error response without an ID, if any."""
        if error.code != REQUEST_TIMEOUT or self.unaddressed is None or self.unaddressed in error.message:
            return error
        message = f"{error.message}; it sent an error without a request ID: {self.unaddressed}"
        return MCPError(code=REQUEST_TIMEOUT, message=message, data=error.data)

    def _cancel(self, key: RequestId, method: str, reason: str) -> None:
        if key in self._unsent:
            self._unsent.discard(key)
        # The handshake cannot be cancelled.
        elif method not in ("initialize", "server/discover") and self._is_open and self.failure is None:
            self.post("notifications/cancelled", {"requestId": key, "reason": reason})

    def mark_unsent(self, key: RequestId) -> None:
        """Mark a request as not sent, so that cancelling it sends no notification."""
        self._unsent.add(key)

    def post(self, method: str, params: dict[str, Any]) -> None:
        """Send a notification in the background."""
        task = asyncio.get_running_loop().create_task(self.notify(method, params))
        self._late.add(task)
        task.add_done_callback(self._late.discard)

    async def notify(self, method: str, params: dict[str, Any] | None = None) -> None:
        """Send a notification."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params:
            message["params"] = params
        await self.transport.send(message)

    @property
    def has_room(self) -> bool:
        """False while the server has too many open requests to accept more messages."""
        return len(self._answering) < MOST_QUESTIONS

    def find_longest(self) -> Bound:
        """Return the largest limit of all pending requests, for a message that is not parsed yet."""
        most = self.bounds.each
        for pending in self._pending.values():
            if most is None or pending.bound.most is None:
                return Bound(None)
            most = max(most, pending.bound.most)
        return Bound(most)

    def end(self, failure: Callable[[], MCPError]) -> None:
        """Fail the connection and all pending requests, each with a new exception from `failure`."""
        if self.failure is None:
            self.failure = failure
        self._is_open = False
        self._fail_all(self.failure)

    def end_too_large(self, error: TooLargeError) -> None:
        """Fail the connection because a message exceeds every request's limit."""
        for pending in self._pending.values():
            if pending.bound.most is not None:
                pending.bound.broken = TooLargeError(str(error), error.size, pending.bound.most)
        message = str(error)
        self.end(lambda: MCPError(code=CONNECTION_CLOSED, message=message))

    def _fail_all(self, make_error: Callable[[], MCPError]) -> None:
        for pending in self._pending.values():
            pending.fail(make_error())
        self._pending.clear()

    def explain_silence(self, error: MCPError, seconds: float | None) -> MCPError:
        """Return `Unreachable` if the handshake timed out, else the error itself."""
        from ..core.connect_errors import Unreachable

        is_timeout = type(error) is MCPError and error.message.startswith(_LATE_ANSWER)
        if error.code != REQUEST_TIMEOUT or seconds is None or not is_timeout:
            return error
        lines = [error.message.removeprefix("the server "), *(f"  | {line}" for line in self.transport.log_lines())]
        return Unreachable(self.transport.name, "\n".join(lines), code=REQUEST_TIMEOUT)

    def receive(self, text: bytes) -> None:
        """Parse and process a message from the transport."""
        try:
            message: Any = from_json(text)
        except ValueError as error:
            self._receive_unreadable(text, str(error))
            return
        if type(message) is not dict or not is_sound(message):
            try:
                message = parse_object(text)
                check_message(message, text)
            except UnreadableError as error:
                self._refuse(text, message, error)
                return
        self.receive_message(message, len(text))

    def receive_message(self, message: dict[str, Any], size: int) -> None:
        """Process a parsed message of `size` bytes."""
        self.has_answered = True
        if type(message.get("method")) is not str:
            self._receive_answer(message, size)
        elif "id" in message:
            self._receive_request(message["id"], message["method"], message.get("params"))
        else:
            self._receive_notification(message["method"], message.get("params"))

    def _receive_answer(self, message: dict[str, Any], size: int) -> None:
        key = _coerce(message.get("id"))
        error = message.get("error")
        if key is None:
            self._handle_unaddressed_error(error)
            return
        pending = self._pending.pop(key, None)
        if pending is None or pending.answer.done():
            return  # the response is late: the request is no longer pending
        if not self.over_http:  # HTTP responses are checked while being read
            try:
                self.bounds.check(size, pending.bound)
            except TooLargeError as too_large:
                self._fail(key, pending, MCPError(code=CONNECTION_CLOSED, message=str(too_large)))
                return
        if error is not None:
            self._fail(key, pending, MCPError(error["code"], error["message"], error.get("data")))
            return
        result: dict[str, Any] = message["result"]
        if self._read is not None:
            try:
                result = self._read(pending.method, result, size)
            except UnreadableError as wrong:
                self._fail(key, pending, _make_unreadable(str(wrong)))
                return
        if self._telemetry is not None:
            self._telemetry.record_result(key, result)
        pending.answer.set_result(result)

    def _fail(self, key: RequestId, pending: _PendingRequest, error: MCPError) -> None:
        if self._telemetry is not None:
            self._telemetry.record_error(key, error)
        pending.fail(error)

    def _handle_unaddressed_error(self, error: Any) -> None:
        """Store an error response without an ID, so that the timeout errors of pending requests can quote the response.

        Older servers respond to `server/discover` without an ID. If `server/discover` is the only pending request, fail
        that request with the error.
        """
        if not self._pending:
            return
        probes = [key for key, pending in self._pending.items() if pending.method == "server/discover"]
        if len(self._pending) == len(probes) == 1:
            key = probes[0]
            self._fail(key, self._pending.pop(key), MCPError(error["code"], error["message"], error.get("data")))
        else:
            self.unaddressed = to_one_line(error["message"])[:_LONGEST_REASON]

    def _receive_unreadable(self, text: bytes, why: str) -> None:
        """Fail the request whose ID is at the start of a response that is not JSON."""
        try:
            shown = text.decode()
        except UnicodeDecodeError:
            shown, why = text.decode(errors="replace"), "it contains bytes that are not UTF-8"
            wrong = why
        else:
            wrong = ""
        match = _ID.match(shown)
        if match is None and wrong:
            match = re.search(r'"id"\s*:\s*(?:(\d{1,18})|"([^"\\]{1,200})")', shown)
        self._log_unreadable(text)
        if match is not None:
            key: RequestId = int(match[1]) if match[1] else match[2]
            self._fail_unreadable(key, wrong or describe_syntax(shown, why))

    def _refuse(self, text: bytes, message: Any, error: UnreadableError) -> None:
        """Fail the request whose ID an invalid JSON-RPC response contains."""
        self._log_unreadable(text)
        if isinstance(message, dict) and ("method" not in message or message.keys() & {"result", "error"}):
            key = message.get("id")
            if isinstance(key, str | int) and not isinstance(key, bool):
                self._fail_unreadable(key, str(error))

    def _log_unreadable(self, text: bytes) -> None:
        self.unreadable += 1
        start = text[: 4 * _SHOWN].decode(errors="replace")
        shown = find_excess(text) or to_one_line(start[:_SHOWN]) + ("…" if len(start) > _SHOWN else "")
        log().warning("ignoring a line from the server that is not a JSON-RPC message: %s", shown)

    def _fail_unreadable(self, key: RequestId, wrong: str) -> None:
        coerced = _coerce(key)
        pending = None if coerced is None else self._pending.pop(coerced, None)
        if pending is not None:
            self._fail(key, pending, _make_unreadable(wrong))

    def _receive_request(self, key: RequestId, method: str, params: dict[str, Any] | None) -> None:
        task = asyncio.get_running_loop().create_task(self._respond(key, method, params))
        self._answering[task] = key
        task.add_done_callback(self._end_question)

    def _end_question(self, task: asyncio.Task[None]) -> None:
        was_full = not self.has_room
        self._answering.pop(task, None)
        if was_full:
            self._room.set()
            self.transport.resume()

    async def wait_for_room(self) -> None:
        """Wait until the server has few enough open requests."""
        self._room.clear()
        await self._room.wait()

    async def _respond(self, key: RequestId, method: str, params: dict[str, Any] | None) -> None:
        answer: dict[str, Any] = {"jsonrpc": "2.0", "id": key}
        try:
            answer["result"] = await self._answer(key, method, params)
        except MCPError as error:
            answer["error"] = error.error.model_dump(mode="json", exclude_none=True)
        except ValidationError:
            answer["error"] = {"code": INVALID_PARAMS, "message": "Invalid request parameters", "data": ""}
        except Exception:  # noqa: BLE001 - a caller's callback can raise anything
            log().exception("handling the server's %r request failed", method)
            answer["error"] = {"code": INTERNAL_ERROR, "message": "The client could not answer"}
        try:
            await self.transport.send(answer)
        except MCPError as error:
            log().debug("the response to %r was not delivered: %s", method, error)

    def _receive_notification(self, method: str, params: dict[str, Any] | None) -> None:
        if self.on_notification is not None:
            from mcp_types import JSONRPCNotification

            self.on_notification(JSONRPCNotification(jsonrpc="2.0", method=method, params=params))
        given = params or {}
        if method == "notifications/cancelled":
            self._cancel_question(given.get("requestId"))
        elif method == "notifications/progress":
            self._receive_progress(given)
        if self.listeners and (listener := self.listeners.get(_find_owner(method, given))) is not None:
            listener(method, given)
        self._start(self._notify(method, params))

    def _cancel_question(self, cancelled: Any) -> None:
        for task, key in reversed(self._answering.items()):
            if _coerce(key) == _coerce(cancelled):
                task.cancel()
                return

    def _receive_progress(self, params: dict[str, Any]) -> None:
        pending = self._pending.get(_coerce(params.get("progressToken")) or "")
        progress, total, message = params.get("progress"), params.get("total"), params.get("message")
        if pending is None or pending.on_progress is None or not _is_number(progress):
            return
        told = pending.on_progress(
            float(progress), float(total) if _is_number(total) else None, message if isinstance(message, str) else None
        )
        self._start(_contain(told))

    def _start(self, coroutine: Coroutine[Any, Any, None]) -> None:
        task = asyncio.get_running_loop().create_task(coroutine)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)


def _find_owner(method: str, params: dict[str, Any]) -> RequestId:
    """Return the ID of the request that a notification concerns, or an empty string if it concerns none."""
    if method == "notifications/cancelled":
        return _coerce(params.get("requestId")) or ""
    meta = params.get("_meta")
    return (_coerce(meta.get(_SUBSCRIPTION)) or "") if isinstance(meta, dict) else ""


async def _contain(told: Awaitable[None]) -> None:
    try:
        await told
    except Exception:  # noqa: BLE001 - a caller's callback can raise anything
        log().exception("on_progress failed")


def _is_number(value: Any) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _coerce(key: Any) -> RequestId | None:
    """Convert the ID of a response to a request ID, or return `None` if the ID is invalid.

    Some servers return integers as strings.
    """
    if type(key) is int:
        return key
    if type(key) is str:
        return int(key) if _DIGITS.match(key) and len(key) < 20 else key
    return None


def _make_unreadable(wrong: str) -> MCPError:
    return MCPError(code=PARSE_ERROR, message=f"the server's response cannot be read: {wrong}")
