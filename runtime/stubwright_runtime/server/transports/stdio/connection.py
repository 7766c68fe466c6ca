"""One client on standard input and output, or in the same process."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from ....mcp.errors import ProtocolError
from ....mcp.revisions import HANDSHAKES
from ....observability.logs import log
from ....values.modules import is_observed
from ...protocol.changes import ChangeNotifier
from ...protocol.messages import encode_error, judge, parse, read, refuse_long
from ...protocol.outgoing import MessageSender
from ...protocol.requests import (
    STATELESS,
    find_handshake_fault,
    find_stateless_fault,
    opens_stateless,
    refuse_id_in_use,
    refuse_late_handshake,
)
from ..channel import ClientChannel
from ..clients import Client
from ..lifecycle import ClientRequest, Lifecycle
from .reading import LONGEST

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Mapping

    from ...app.core import Core
    from ...core.call_state import Transport
    from ...core.request import Channel
    from ...protocol.client_subscriptions import Change
    from .reading import Line

    _Send: TypeAlias = Callable[[bytes], Awaitable[None]]

_LAST_ANSWERS: Final = 2.0  # seconds for the answers that are still due when the input ends
_LAST_ERRORS: Final = 1.0  # seconds for telling the client which requests a stop cut off

_INITIALIZED: Final = "notifications/initialized"


class Delivery(Protocol):
    """The messages to a client.

    Attributes:
        is_full: Whether too many bytes wait until the client reads them.
    """

    @property
    def is_full(self) -> bool:
        """True if too many bytes wait."""
        ...

    @property
    def send(self) -> _Send:
        """The function that sends a message."""
        ...

    async def wait_for_change(self) -> None:
        """Wait until the client has read something, or `end_waits` is called."""

    def end_waits(self) -> None:
        """End the waits for a change."""


class Connection:
    """A client."""

    def __init__(self, core: Core, output: Delivery, transport: Transport = "stdio") -> None:
        """Create the connection of a client to a server.

        Args:
            core: The server.
            output: The messages to the client.
            transport: The transport, for records and telemetry.
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
        """True if each request says its revision, as the first one decides; `None` before it."""
        self._client: Client | None = None
        """The client that has shaken hands, up to 2025-11-25."""
        self._handshake: str | int | None = None
        """The id of the request that did."""
        self._telling: ChangeNotifier | None = None
        self._telling_task: asyncio.Task[None] | None = None
        self._end_session: Callable[[], None] | None = None
        """Records the duration of the session, if telemetry observes it."""
        core.publishers.append(self._publish)

    def takes(self, line: Line) -> bool:
        """Begin to answer a line if it is one well-formed request, and the output has room; return whether it did."""
        message = parse(line.data) if line.is_whole and not self._output.is_full else None
        if message is None or "id" not in message or judge(message).problem is not None or "method" not in message:
            return False
        if message["id"] in self._requests:
            return False
        self._answer(message, self._output.send)
        return True

    def end(self) -> None:
        """Record the end of the input; answers no longer wait for room."""
        self._has_ended = True
        self._output.end_waits()

    async def take(self, line: Line) -> None:
        """Answer the messages of a line, or begin to, as soon as the output has room or the input has ended."""
        while self._output.is_full and not self._has_ended:
            await self._output.wait_for_change()
        if not line.data.strip() or self.takes(line):
            return
        revision = None if self._client is None else self._client.revision
        batch = _Batch(self._output) if revision is not None and revision.has("batches") else None
        for entry in read(line.data) if line.is_whole else (refuse_long(line.data, LONGEST),):
            send = self._output.send if batch is None or not entry.is_part else batch.add
            if entry.problem is not None:
                log().warning("refused a message that %s", entry.problem)
            if entry.answer is not None:
                await send(encode_error(entry.answer.id, entry.answer.error, revision))
            if entry.message is not None:
                task = await self._take(entry.message, send)
                if task is not None and batch is not None:
                    batch.tasks.append(task)
        if batch is not None:
            sending = asyncio.create_task(batch.send())
            self._batches.add(sending)
            sending.add_done_callback(self._batches.discard)

    async def _take(self, message: Mapping[str, Any], send: _Send) -> asyncio.Task[None] | None:
        """Answer a request, or begin to, in a task that is returned; take any other message."""
        if "method" not in message:
            self._outgoing.questions.take(message)
        elif "id" not in message:
            await self._hear(message)
        elif message["id"] in self._requests:
            await send(encode_error(message["id"], refuse_id_in_use()))
        else:
            return self._answer(message, send)
        return None

    def _answer(self, message: Mapping[str, Any], send: _Send) -> asyncio.Task[None]:
        """Begin to answer a request, in a task that is returned."""
        if self._is_stateless is None:
            self._is_stateless = opens_stateless(message)
        fault = self._find_fault(message)
        params: Mapping[str, Any] = message.get("params") or {}
        shakes_hands = fault is None and message["method"] == "initialize"
        if shakes_hands:
            self._client = Client.from_handshake(params, self._core.changes)
            self._handshake = message["id"]
        client = self._sender(params, fault)
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
            call_next=self._lifecycle.answer_other,
            is_admissible=fault is None and is_initialized,
            client=client,
            fault=fault,
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

    def _find_fault(self, message: Mapping[str, Any]) -> ProtocolError | None:
        """Return the fault of a request in the era of the connection; `None` if there is none."""
        has_tasks = self._lifecycle.has_tasks
        if not self._is_stateless:
            return find_handshake_fault(message, is_initialized=self._client is not None, has_tasks=has_tasks)
        if message["method"] == "initialize":
            return refuse_late_handshake(message)
        return find_stateless_fault(message, has_tasks=has_tasks)

    def _sender(self, params: Mapping[str, Any], fault: ProtocolError | None) -> Client:
        """Return the sender of a request; an unknown client if it does not shaken hands."""
        if self._client is not None:
            return self._client
        if not self._is_stateless:
            return Client.make_unknown(HANDSHAKES[-1], stateless=False)
        if fault is not None:
            return Client.make_unknown(STATELESS[-1], stateless=True)
        return Client.from_request(params["_meta"], logs=self._core.logs)

    async def _respond(self, request_id: str | int, request: ClientRequest, send: _Send) -> None:
        """Answer a request."""
        try:
            while self._output.is_full:
                await self._output.wait_for_change()
            result = await self._lifecycle.answer(request)
            await send(self._lifecycle.encode_response(request, result))
        except asyncio.CancelledError:
            if not request.is_cancelled:
                raise
            # A task that ends as cancelled keeps the frames that it was in, which hold the message, and the task.
        finally:
            self._forget(request_id, request)

    def _forget(self, request_id: str | int, request: ClientRequest) -> None:
        """Note that a request is answered, or that its answer is no longer needed."""
        request.close()
        if self._requests.get(request_id) is request:
            del self._requests[request_id]

    async def _hear(self, message: Mapping[str, Any]) -> None:
        """Take a notification."""
        if self._client is not None and is_observed():
            await self._lifecycle.note(message, self._client, self._transport)
        params: Mapping[str, Any] = message.get("params") or {}
        if message["method"] == _INITIALIZED and self._client is not None and self._telling is None:
            self._outgoing.questions.begin()
            if self._client.wants is not None:
                self._telling = ChangeNotifier.join_handshake(self._client.wants, self._core.changes, self._outgoing)
                self._telling_task = asyncio.create_task(self._telling.run())
        # `True` equals the id 1, and would find its call.
        elif message["method"] == "notifications/cancelled" and type(params.get("requestId")) in (int, str):
            request_id, request = params["requestId"], self._requests.get(params["requestId"])
            if request is None or request.task is None or request_id == self._handshake:  # which is not cancelled
                return
            # A task that is cancelled before its first step never runs, so it cannot clean up after itself.
            request.task.add_done_callback(lambda _: self._forget(request_id, request))
            request.cancel()

    async def _publish(self, change: Change) -> None:
        """Tell the client of a change."""
        if self._telling is not None:
            self._telling.on_change(change)

    async def cut_off(self) -> None:
        """Answer the requests in progress with errors, until the client stops reading."""
        self._core.end_streams()
        self._core.in_flight.end()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LAST_ERRORS):
                await self.wait_for_answers()

    async def disconnect(self) -> None:
        """Give requests under way time to end after the client's last message; questions to the client fail."""
        self._outgoing.questions.close()
        self._core.end_streams()
        try:
            async with asyncio.timeout(_LAST_ANSWERS):
                await self.wait_for_answers()
        except TimeoutError:
            await self.cut_off()

    async def wait_for_answers(self) -> None:
        """Wait until no request is in progress."""
        while tasks := self._list_tasks():
            await asyncio.wait(tasks)

    def _list_tasks(self) -> list[asyncio.Task[None]]:
        tasks = [task for request in self._requests.values() if (task := request.task) is not None]
        return [*tasks, *self._batches]

    async def close(self) -> None:
        """End all that is in progress."""
        if self._end_session is not None:
            self._end_session()
        self._core.publishers.remove(self._publish)
        tasks = self._list_tasks()
        if self._telling_task is not None:
            tasks.append(self._telling_task)
        for task in tasks:
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)


class _Batch:
    """The responses to the requests of one batch, which are sent as one array (JSON-RPC 2.0, 6).

    Attributes:
        tasks: The tasks that answer its requests.
    """

    def __init__(self, output: Delivery) -> None:
        self.tasks: list[asyncio.Task[None]] = []
        self._output = output
        self._responses: list[bytes] = []

    async def add(self, response: bytes) -> None:
        """Keep a response until all have come."""
        self._responses.append(response)

    async def send(self) -> None:
        """Wait for the requests, and send their responses; there are none to notifications and cancelled requests."""
        if self.tasks:
            await asyncio.wait(self.tasks)
        if self._responses:
            await self._output.send(b"[%b]" % b",".join(self._responses))
