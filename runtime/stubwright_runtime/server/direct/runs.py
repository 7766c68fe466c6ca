"""A request that is being answered, and the channel from its handler to its sender.

Over HTTP a run begins without a stream, to end with a plain response. If its handler sends another message, or it takes
long, it is moved to a stream; the handler does not notice.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, Final

from ...mcp.errors import ProtocolError
from ...mcp.vocabulary import LOG_LEVELS
from ..protocol.outgoing import make_log_message, make_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...mcp.vocabulary import LogLevel
    from ..features.url_elicitation import UrlQuestions
    from ..protocol.outgoing import Outgoing
    from ..transports.http.events import AnswerStream
    from .clients import Client

CANCELLED: Final = ProtocolError(-32800, "Request cancelled")
"""The answer over HTTP to a request that its client cancelled, up to 2025-11-25.

Receivers SHOULD NOT answer it (basic/utilities/cancellation). Over HTTP a POST must be answered: by one JSON object, or
by a stream that SHOULD NOT end without the response (basic/transports); otherwise a client whose stream broke off would
come back for it again and again. The official SDK gives the same answer. On stdio there is none; from 2026-07-28 on a
client cancels by closing its stream.
"""


class Run:
    """One request that is being answered.

    Attributes:
        id: Its JSON-RPC id.
        task: The task that answers it.
        is_cancelled: True if its result is not wanted any more.
        is_moved: True if it is answered on its stream.
        stream: Over HTTP, the stream that it may be answered on.
        traceparent: The header `traceparent` of a request over HTTP.
    """

    def __init__(
        self,
        request_id: str | int,
        move: Callable[[Run], object] | None = None,
        may_go_on: Callable[[Run], bool] = lambda _: True,
        traceparent: str | None = None,
    ) -> None:
        """Take a request.

        Args:
            request_id: Its id.
            move: Moves it to a stream, if it may have one.
            may_go_on: Tells whether it may go on without its client, if the client can come back.
            traceparent: The header `traceparent` of a request over HTTP.
        """
        self.id = request_id
        self.task: asyncio.Task[None] | None = None
        self.is_cancelled = False
        self.is_moved = False
        self.stream: AnswerStream | None = None
        self.traceparent = traceparent
        self._move = move
        self._may_go_on = may_go_on
        self._has_ended = False

    def move(self) -> None:
        """Have it answered on its stream, unless it is already."""
        if not self.is_moved and not self._has_ended and self._move is not None:
            self.is_moved = True
            self._move(self)

    def release(self) -> None:
        """Close the connection of its stream, so that its client comes back; without room to wait for it, keep it."""
        if self._has_ended or self._may_go_on(self):
            self._close_connection()

    def expire(self) -> None:
        """Close the connection of its stream in any case; without room to wait for its client, cancel it, too."""
        if not self._has_ended and not self._may_go_on(self):
            self.cancel()
        self._close_connection()

    def abandon(self) -> None:
        """Note that its client left. If it cannot come back, or there is no room to wait for it, cancel the run."""
        if self.stream is not None and self.stream.is_kept:
            self.stream.abandon()
            if not self._has_ended and not self._may_go_on(self):
                self.cancel()
        else:
            self.cancel()

    def _close_connection(self) -> None:
        self.move()
        if self.stream is not None:
            self.stream.release()

    def end(self) -> None:
        """Note that it has ended, so that it cannot be cancelled any more."""
        self._has_ended = True

    def cancel(self) -> None:
        """End it, since its result is not wanted any more. A run without a task yet looks at `is_cancelled`."""
        if not self._has_ended:
            self.is_cancelled = True
            if self.task is not None:
                self.task.cancel()


class DirectChannel:
    """The way to the caller of a request.

    Notifications to a client that has disconnected are dropped, and the handler goes on. Requests to it fail.

    Attributes:
        outgoing: The messages to it.
        connection: The messages to it that belong to no request, up to 2025-11-25; without this, it gets none.
        session: The id of its session over HTTP, up to 2025-11-25.
        is_resumable: True if it can come back for the answer when the stream has ended.
    """

    def __init__(
        self,
        client: Client,
        params: Mapping[str, Any] | None,
        outgoing: Outgoing,
        urls: UrlQuestions | None = None,
        *,
        connection: Outgoing | None = None,
        session: str | None = None,
        release: Callable[[], None] | None = None,
    ) -> None:
        """Take the caller and the parameters of the request.

        Args:
            client: The caller.
            params: The parameters.
            outgoing: The messages to the client.
            urls: The questions that open a URL.
            connection: The messages to the client that belong to no request, up to 2025-11-25.
            session: The id of its session over HTTP.
            release: Closes the stream of the request, if the client can come back for the answer.
        """
        self._client = client
        self._params = params
        self.outgoing = outgoing
        self._urls = urls
        self._release = release
        self.connection = connection
        self.session = session
        self.is_resumable = release is not None
        self._is_answered = False

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The capabilities that the client declared."""
        return self._client.capabilities

    @property
    def client(self) -> tuple[str, str] | None:
        """The name and the version that it reports."""
        return self._client.name

    @property
    def token(self) -> str | int | None:
        """The progress token, if the caller asked for progress."""
        meta: Mapping[str, Any] = (self._params or {}).get("_meta") or {}
        return meta.get("progressToken")

    def wants(self, level: LogLevel) -> bool:
        """Tell whether it wants messages of this level."""
        wanted = self._client.listens_to
        return wanted is not None and LOG_LEVELS.index(level) >= LOG_LEVELS.index(wanted)

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Tell it something on the stream of the request."""
        await self.outgoing.notify(method, params)

    async def tell(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell it something on its connection, if that is there."""
        if self.connection is not None:
            await self.connection.notify(method, params)

    def end_progress(self) -> None:
        """Note the answer, after which no progress is sent (MCP 2025-11-25, basic/utilities/progress)."""
        self._is_answered = True

    async def send_progress(self, done: float, total: float | None, message: str | None) -> None:
        """Send a progress notification, if the caller asked for them and waits for the answer."""
        if (token := self.token) is not None and not self._is_answered:
            await self.outgoing.notify("notifications/progress", make_progress(token, done, total, message))

    async def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        """Send a log message, if the caller wants messages of this level."""
        if self.wants(level):
            await self.outgoing.notify("notifications/message", make_log_message(level, data, logger))

    async def subscribe(self, uri: str) -> None:
        """Tell it of changes of a resource, too."""
        if self._client.wants is not None:
            self._client.wants.subscribe(uri)

    async def release(self) -> None:
        """Close the stream of the request, if the caller can come back for the response."""
        if self._release is not None:
            self._release()

    async def request(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Ask it something."""
        return await self.outgoing.ask(method, params)

    async def note_visit(self, elicitation: str) -> None:
        """Remember that it was asked to open a URL."""
        if self._urls is not None:
            self._urls.add(elicitation, self.outgoing)

    async def notify_visited(self, elicitation: str) -> bool:
        """Tell it that all is done at a URL."""
        return self._urls is not None and await self._urls.complete(elicitation)
