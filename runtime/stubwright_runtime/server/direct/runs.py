"""A request that is answered without the SDK, until its handler wants to say something else than its answer.

Then, since nothing has been sent yet, the request is handed over: the SDK gets it as if it had just come, and finds the
run, which goes on, in place of a handler to start. The run is what waits; what it says goes by the SDK's session.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from ...mcp.errors import ProtocolError
from ...mcp.vocabulary import LOG_LEVELS
from ...observability.logs import log
from ..protocol.outgoing import DisconnectedError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from mcp_types import Notification

    from ...mcp.vocabulary import LogLevel
    from ..core.exchange import Result
    from ..features.url_elicitation import UrlQuestions
    from ..protocol.outgoing import Outgoing
    from .clients import Client

    Headers: TypeAlias = Sequence[tuple[bytes, bytes]]

_LATE: Final = 1.0
"""Seconds in which the SDK begins to wait for a run, also where its client is gone already."""


CANCELLED: Final = ProtocolError(-32800, "Request cancelled")
"""The answer to a request that its client has cancelled, up to 2025-11-25, where a stream ends with an answer."""


class Conversation(Protocol):
    """The way to a client by which it can be told and asked more than the answer: the SDK's."""

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Send a progress notification."""

    async def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        """Send a log message."""

    async def release(self) -> None:
        """Close the stream of the request."""

    async def request(self, request: Any, result: Any) -> Any:
        """Ask it something."""

    async def asked_to_visit(self, elicitation: str) -> None:
        """Remember that it was asked to open a URL."""

    async def visited(self, elicitation: str) -> bool:
        """Tell it that all is done at a URL."""
        ...


class Run:
    """One request that is being answered.

    Attributes:
        id: Its JSON-RPC id.
        task: The task that answers it.
        is_cancelled: Whether its client has cancelled it.
        is_passed_on: Whether the SDK has the request, so that it hears of a cancellation, too.
        write: Makes the response of its result, if it is answered on a stream of events that is not the SDK's.
    """

    def __init__(self, request_id: str | int, hand_over: Callable[[Run], object] | None = None) -> None:
        """Take what hands the request over to the SDK, if the SDK may get it."""
        self.id = request_id
        self._hand_over = hand_over
        self.task: asyncio.Task[None] | None = None
        self.is_cancelled = False
        self.is_passed_on = False
        self.write: Callable[[Result | ProtocolError], tuple[int, Headers, bytes]] | None = None
        self._ended = asyncio.Event()
        self._conversation: asyncio.Future[Conversation] | None = None
        self._result: asyncio.Future[Result | ProtocolError] | None = None

    @property
    def is_handed_over(self) -> bool:
        """Whether the SDK answers it."""
        return self._conversation is not None

    async def conversation(self) -> Conversation:
        """Return the SDK's way to the client; the request is handed over for it."""
        return await asyncio.shield(self.move())

    async def reach(self) -> Conversation | None:
        """Return the way to the client; `None` if it has disconnected, so that what it would be told is dropped."""
        try:
            return await self.conversation()
        except DisconnectedError:
            log().debug("what a handler tells its caller is dropped, since the client has disconnected")
            return None

    def move(self) -> asyncio.Future[Conversation]:
        """Hand the request over, unless it is already."""
        if self._hand_over is None:
            raise RuntimeError("the request is not handed over")
        if self._conversation is None:
            loop = asyncio.get_running_loop()
            self._conversation, self._result = loop.create_future(), loop.create_future()
            self._hand_over(self)
        return self._conversation

    def finish(self, result: Result | ProtocolError) -> bool:
        """Note how it ended; whether the SDK answers it."""
        self._ended.set()
        if self._result is None:
            return False
        if not self._result.done():
            self._result.set_result(result)
        return True

    def take_back(self) -> None:
        """Answer it here after all, since its client has disconnected."""
        self._result = None
        self._fail()

    async def leave(self) -> None:
        """Note that the SDK is done with the request: if it has answered without the run, its result is not wanted."""
        if self._conversation is not None:
            await asyncio.wait([self._conversation], timeout=_LATE)
            if not self._conversation.done():
                self._fail()
                self.cancel()

    def _fail(self) -> None:
        if self._conversation is not None and not self._conversation.done():
            self._conversation.set_exception(DisconnectedError())
            self._conversation.exception()  # nobody may wait for it

    def give_up(self) -> None:
        """Note that it has ended without a result, since nobody wants one any more."""
        self._ended.set()
        if self._result is not None:
            self._result.cancel()

    async def join(self, conversation: Conversation) -> Result:
        """Return the result, for the SDK, which brings its way to the client. Raises ProtocolError."""
        if self._conversation is None or self._result is None:
            raise RuntimeError("the request was not handed over")
        self.is_passed_on = True
        if not self._conversation.done():
            self._conversation.set_result(conversation)
        try:
            result = await asyncio.shield(self._result)
        except asyncio.CancelledError:
            by_client = self.is_cancelled
            self.cancel()
            await self._ended.wait()
            if by_client:  # before the SDK could hear of it, for whom this is an answer like any other
                raise ProtocolError(CANCELLED.code, CANCELLED.message) from None
            raise
        if isinstance(result, ProtocolError):
            raise result
        return result

    def cancel(self) -> None:
        """End it, since nobody wants its result any more. If it has not begun, whoever begins it looks."""
        if not self._ended.is_set():
            self.is_cancelled = True
            if self.task is not None:
                self.task.cancel()


class DirectChannel:
    """The way to the caller of a request that the SDK has not seen.

    A client that has disconnected cannot be told anything more: what it would have been told is dropped, and the
    handler goes on. What needs an answer fails.

    Attributes:
        outgoing: The messages to it; without that, the SDK has to be asked for them.
        connection: The messages to it that belong to no request, up to 2025-11-25; without that, it gets none.
        session: The id of its session over HTTP, up to 2025-11-25.
        is_resumable: Whether it can come back for the answer, when the stream has ended.
    """

    def __init__(
        self,
        client: Client,
        params: Mapping[str, Any] | None,
        run: Run,
        outgoing: Outgoing | None = None,
        urls: UrlQuestions | None = None,
        *,
        connection: Outgoing | None = None,
        session: str | None = None,
        is_resumable: bool = False,
    ) -> None:
        """Take who calls, with what, and the run.

        Args:
            client: Who calls.
            params: What with.
            run: The request that is being answered.
            outgoing: The messages to the client; without that, the SDK has to be asked for them.
            urls: The questions that open a URL.
            connection: The messages to the client that belong to no request, up to 2025-11-25.
            session: The id of its session over HTTP.
            is_resumable: Whether it can come back for the answer, when the stream has ended.
        """
        self._client = client
        self._params = params
        self._run = run
        self.outgoing = outgoing
        self._urls = urls
        self.connection = connection
        self.session = session
        self.is_resumable = is_resumable

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """What the client declared that it can do."""
        return self._client.capabilities

    @property
    def client(self) -> tuple[str, str] | None:
        """The name and the version that it says it has."""
        return self._client.name

    @property
    def token(self) -> str | int | None:
        """What progress is told with, where the caller asked for it."""
        meta: Mapping[str, Any] = (self._params or {}).get("_meta") or {}
        return meta.get("progressToken")

    def wants(self, level: LogLevel) -> bool:
        """Tell whether it wants messages of this level."""
        wanted = self._client.listens_to
        return wanted is not None and LOG_LEVELS.index(level) >= LOG_LEVELS.index(wanted)

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Tell it something on the stream of the request. Raises RuntimeError if only the SDK could."""
        if self.outgoing is None:
            raise RuntimeError(f"{method} cannot be sent without the SDK")
        await self.outgoing.notify(method, params)

    async def tell(self, notification: Notification[Any, Any]) -> None:
        """Tell it something on its connection, if that is there."""
        if self.connection is not None:
            message = notification.model_dump(by_alias=True, mode="json", exclude_none=True)
            await self.connection.notify(message["method"], message.get("params"))

    async def progress(self, done: float, total: float | None, message: str | None) -> None:
        """Send a progress notification, where the caller asked for them."""
        if (token := self.token) is None:
            return
        if self.outgoing is not None:
            known = {"total": total, "message": message}
            told = {key: value for key, value in known.items() if value is not None}
            progress = {"progressToken": token, "progress": done, **told}
            await self.outgoing.notify("notifications/progress", progress)
        elif (conversation := await self._run.reach()) is not None:
            await conversation.progress(done, total, message)

    async def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        """Send a log message, where the caller wants messages of this level."""
        if not self.wants(level):
            return
        if self.outgoing is not None:
            source = {} if logger is None else {"logger": logger}
            await self.outgoing.notify("notifications/message", {"level": level, "data": data, **source})
        elif (conversation := await self._run.reach()) is not None:
            await conversation.log(level, data, logger)

    async def subscribe(self, uri: str) -> None:
        """Tell it of changes of a resource, too."""
        if self._client.wants is not None:
            self._client.wants.subscribe(uri)

    async def release(self) -> None:
        """Close the stream of the request, where the caller can come back for the response."""
        if self.outgoing is None and (conversation := await self._run.reach()) is not None:
            await conversation.release()

    async def request(self, request: Any, result: Any) -> Any:
        """Ask it something."""
        if self.outgoing is not None:
            return await self.outgoing.ask(request, result)
        return await (await self._run.conversation()).request(request, result)

    async def asked_to_visit(self, elicitation: str) -> None:
        """Remember that it was asked to open a URL."""
        if self.outgoing is None:
            await (await self._run.conversation()).asked_to_visit(elicitation)
        elif self._urls is not None:
            self._urls.add(elicitation, self.outgoing)

    async def visited(self, elicitation: str) -> bool:
        """Tell it that all is done at a URL."""
        if self.outgoing is None:
            return await (await self._run.conversation()).visited(elicitation)
        return self._urls is not None and await self._urls.complete(elicitation)
