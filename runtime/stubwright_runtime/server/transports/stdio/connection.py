"""A client's connection over stdio or within the process."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from ....mcp.errors import INTERNAL_ERROR, ProtocolError
from ....mcp.revisions import HANDSHAKES
from ....observability.logs import log
from ....values.modules import is_observed
from ...app.core import STOPPED
from ...execution.event_loop import CANCEL_TIMEOUT
from ...protocol.changes import ChangeNotifier
from ...protocol.messages import encode_error, parse, read, refuse_long, validate
from ...protocol.refusals import STATELESS, refuse_id_in_use, refuse_late_handshake
from ...protocol.requests import find_handshake_error, find_stateless_error, is_stateless_request
from ...protocol.sender import MessageSender
from ..channel import ClientChannel
from ..lifecycle import Client, ClientRequest, Lifecycle
from .reader import MAX_LINE

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ...app.core import Core
    from ...core.call_state import Transport
    from ...core.request import Channel
    from ...protocol.client_subscriptions import Change
    from .reader import Line

    _Send: TypeAlias = Callable[[bytes], Awaitable[None]]

_DRAIN_SECONDS: Final = 2.0  # seconds in which pending requests can finish after the end of the input
_ABORT_SECONDS: Final = 1.0  # seconds to send the errors for aborted requests

_INITIALIZED: Final = "notifications/initialized"


class Delivery(Protocol):
    """Sends messages to a client."""

    @property
    def is_full(self) -> bool:
        """True if the client has too much unread output."""
        ...

    @property
    def send(self) -> _Send:
        """Send a message."""
        ...

    async def wait_for_change(self) -> None:
        """Wait until the client has read bytes or `end_waits` is called."""

    def end_waits(self) -> None:
        """Make all calls of `wait_for_change` return."""


class Connection:
    """A client's connection to the server."""

    def __init__(self, core: Core, output: Delivery, transport: Transport = "stdio") -> None:
        """Create a client's connection to a server.

        Args:
            core: The server, without a transport.
            output: Delivers messages to the client.
            transport: The transport's name in records and telemetry.
        """
        self._transport: Transport = transport
        self._core = core
        self._output = output
        self._outgoing = MessageSender(output.send)
        self._lifecycle = Lifecycle(core)
        self._requests: dict[str | int, ClientRequest] = {}
        self._batches: set[asyncio.Task[None]] = set()
        """The tasks that send the responses to batches."""
        self._has_ended = False
        self._is_stateless: bool | None = None
        """True if the client uses MCP 2026-07-28 or later, without a handshake; `None` before its first request."""
        self._client: Client | None = None
        """The client that sent the handshake (MCP 2025-11-25 and earlier)."""
        self._handshake: str | int | None = None
        """The handshake request's ID."""
        self._notifier: ChangeNotifier | None = None
        self._notifier_task: asyncio.Task[None] | None = None
        self._end_session: Callable[[], None] | None = None
        """Records the session's duration when it ends; `None` if telemetry is not used."""
        core.publishers.append(self._publish)

    def try_handle(self, line: Line) -> bool:
        """Handle a line that is one well-formed request, if the output has room. Return whether it is handled."""
        message = parse(line.data) if line.is_whole and not self._output.is_full else None
        if message is None or "id" not in message or validate(message).problem is not None or "method" not in message:
            return False
        if message["id"] in self._requests:
            return False
        self._answer(message, self._output.send)
        return True

    def end(self) -> None:
        """Process the end of the input. After that, waiting lines are handled even if the output has no room."""
        self._has_ended = True
        self._output.end_waits()

    async def handle(self, line: Line) -> None:
        """Process the messages in a line once the output has room or the input has ended."""
        while self._output.is_full and not self._has_ended:
            await self._output.wait_for_change()
        if not line.data.strip() or self.try_handle(line):
            return
        revision = None if self._client is None else self._client.revision
        batch = _Batch(self._output) if revision is not None and revision.has("batches") else None
        for entry in read(line.data) if line.is_whole else (refuse_long(line.data, MAX_LINE),):
            send = self._output.send if batch is None or not entry.is_part else batch.add
            if entry.problem is not None:
                log().warning("refused a message that %s", entry.problem)
            if entry.answer is not None:
                await send(encode_error(entry.answer.id, entry.answer.error, revision))
            if entry.message is not None:
                task = await self._dispatch(entry.message, send)
                if task is not None and batch is not None:
                    batch.tasks.append(task)
        if batch is not None:
            sending = asyncio.create_task(batch.send())
            self._batches.add(sending)
            sending.add_done_callback(self._batches.discard)

    async def _dispatch(self, message: Mapping[str, Any], send: _Send) -> asyncio.Task[None] | None:
        """Process a message. If the message is a request, return the task that handles it."""
        if "method" not in message:
            self._outgoing.questions.resolve(message)
        elif "id" not in message:
            await self._handle_notification(message)
        elif message["id"] in self._requests:
            await send(encode_error(message["id"], refuse_id_in_use()))
        else:
            return self._answer(message, send)
        return None

    def _answer(self, message: Mapping[str, Any], send: _Send) -> asyncio.Task[None]:
        """Start handling a request and return the task that handles it."""
        if self._is_stateless is None:
            self._is_stateless = is_stateless_request(message)
        error = self._find_error(message)
        params: Mapping[str, Any] = message.get("params") or {}
        shakes_hands = error is None and message["method"] == "initialize"
        if shakes_hands:
            self._client = Client.from_handshake(params, self._core.changes)
            self._handshake = message["id"]
        client = self._identify_client(params, error)
        is_initialized = self._is_stateless or self._client is not None
        request = ClientRequest(
            package=self._lifecycle.package,
            method=message["method"],
            id=message["id"],
            params=params,
            revision=client.revision,
            transport=self._transport,
            threads=self._lifecycle.threads,
            open_channel=self._open_channel,
            call_next=self._lifecycle.answer_default,
            is_admissible=error is None and is_initialized,
            principal=self._core.user,
            client=client,
            error=error,
            is_initialized=is_initialized,
        )
        if shakes_hands:
            self._end_session = self._core.instrumentation.begin_session(request)
        self._requests[message["id"]] = request
        request.task = asyncio.create_task(self._respond(message["id"], request, send))
        return request.task

    def _open_channel(self, request: ClientRequest) -> Channel:
        urls = self._core.input_requests.urls
        return ClientChannel(request.client, request.params, self._outgoing, urls, connection=self._outgoing)

    def _find_error(self, message: Mapping[str, Any]) -> ProtocolError | None:
        has_tasks = self._lifecycle.has_tasks
        if not self._is_stateless:
            return find_handshake_error(message, is_initialized=self._client is not None, has_tasks=has_tasks)
        if message["method"] == "initialize":
            return refuse_late_handshake(message)
        return find_stateless_error(message, has_tasks=has_tasks)

    def _identify_client(self, params: Mapping[str, Any], error: ProtocolError | None) -> Client:
        """Return the client that sent a request, or a placeholder before the handshake and for invalid requests."""
        if self._client is not None:
            return self._client
        if not self._is_stateless:
            return Client.make_unknown(HANDSHAKES[-1], stateless=False)
        if error is not None:
            return Client.make_unknown(STATELESS[-1], stateless=True)
        return Client.from_request(params["_meta"], logs=self._core.logs)

    async def _respond(self, request_id: str | int, request: ClientRequest, send: _Send) -> None:
        try:
            while self._output.is_full:
                await self._output.wait_for_change()
            result = await self._lifecycle.answer(request)
            # MCP, cancellation: SHOULD NOT send a response for a cancelled request, even if its handler continued
            if not request.is_cancelled:
                await send(self._lifecycle.encode_response(request, result))
        except asyncio.CancelledError:
            if not request.is_cancelled:
                raise
            # Not re-raised, because a cancelled task would retain its frames, which refer to the message and the task.
        finally:
            self._forget(request_id, request)

    def _forget(self, request_id: str | int, request: ClientRequest) -> None:
        request.close()
        if self._requests.get(request_id) is request:
            del self._requests[request_id]

    async def _handle_notification(self, message: Mapping[str, Any]) -> None:
        if self._client is not None and is_observed():
            await self._lifecycle.observe_notification(message, self._client, self._transport)
        params: Mapping[str, Any] = message.get("params") or {}
        if message["method"] == _INITIALIZED and self._client is not None and self._notifier is None:
            self._outgoing.questions.begin()
            if self._client.subscriptions is not None:
                self._notifier = ChangeNotifier.join_handshake(
                    self._client.subscriptions, self._core.changes, self._outgoing
                )
                self._notifier_task = asyncio.create_task(self._notifier.run())
        # In Python, `True == 1`, so a Boolean ID would cancel request 1.
        elif message["method"] == "notifications/cancelled" and type(params.get("requestId")) in (int, str):
            request_id, request = params["requestId"], self._requests.get(params["requestId"])
            if request is None or request.task is None or request_id == self._handshake:  # MCP: MUST NOT be cancelled
                return
            # A task that is cancelled before its first step never runs, not even its `finally` block.
            request.task.add_done_callback(lambda _: self._forget(request_id, request))
            request.cancel()

    async def _publish(self, change: Change) -> None:
        if self._notifier is not None:
            self._notifier.on_change(change)

    async def abort_requests(self) -> None:
        """End the pending requests with errors, also those whose handlers ignore their cancellation."""
        self._core.end_streams()
        self._core.end_requests()
        with suppress(TimeoutError):
            async with asyncio.timeout(_ABORT_SECONDS):
                await self.wait_for_answers()
        unanswered = {key: request for key, request in self._requests.items() if not request.is_cancelled}
        for request in unanswered.values():
            request.is_cancelled = True  # the handler's own response is not sent
        with suppress(TimeoutError):
            async with asyncio.timeout(_ABORT_SECONDS):
                for request_id in unanswered:
                    log().warning("a handler is still running; its request ends without a result")
                    await self._output.send(encode_error(request_id, ProtocolError(INTERNAL_ERROR, STOPPED)))

    async def disconnect(self) -> None:
        """Wait for pending requests after the end of the input, then abort the remaining requests.

        Requests to the client fail immediately.
        """
        self._outgoing.questions.close()
        self._core.end_streams()
        try:
            async with asyncio.timeout(_DRAIN_SECONDS):
                await self.wait_for_answers()
        except TimeoutError:
            await self.abort_requests()

    async def wait_for_answers(self) -> None:
        """Wait until all requests and batches have been answered."""
        while tasks := self._list_tasks():
            await asyncio.wait(tasks)

    def _list_tasks(self) -> list[asyncio.Task[None]]:
        tasks = [task for request in self._requests.values() if (task := request.task) is not None]
        return [*tasks, *self._batches]

    async def close(self) -> None:
        """Cancel all tasks of the connection, and wait for at most `CANCEL_TIMEOUT`."""
        if self._end_session is not None:
            self._end_session()
        self._core.publishers.remove(self._publish)
        tasks = self._list_tasks()
        if self._notifier_task is not None:
            tasks.append(self._notifier_task)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks, timeout=CANCEL_TIMEOUT)


class _Batch:
    """The responses to one batch, which are sent as one array (JSON-RPC 2.0, 6).

    Attributes:
        tasks: The tasks that handle the batch's requests.
    """

    def __init__(self, output: Delivery) -> None:
        self.tasks: list[asyncio.Task[None]] = []
        self._output = output
        self._responses: list[bytes] = []

    async def add(self, response: bytes) -> None:
        self._responses.append(response)

    async def send(self) -> None:
        """Wait for all requests, and send any responses, even if cancelled. Cancelled requests get no response."""
        try:
            if self.tasks:
                await asyncio.wait(self.tasks)
        finally:
            if self._responses:
                await self._output.send(b"[%b]" % b",".join(self._responses))
