"""The way from a handler to the sender of its request, over our own transports."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...mcp.vocabulary import LOG_LEVELS
from ..protocol.outgoing import make_log_message, make_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...mcp.vocabulary import LogLevel
    from ..features.url_elicitation import UrlQuestions
    from ..protocol.outgoing import MessageSender
    from .clients import Client


class ClientChannel:
    """The way to the caller of a request.

    Notifications to a client that has disconnected are dropped, and the handler goes on. Requests to it fail.

    Attributes:
        token: The progress token, if the caller asked for progress.
        outgoing: The messages to it.
        connection: The messages to it that belong to no request, up to 2025-11-25; without this, it receives no such
            messages.
        session: The id of its session over HTTP, up to 2025-11-25.
        is_resumable: True if it can come back for the answer when the stream has ended.
    """

    def __init__(
        self,
        client: Client,
        params: Mapping[str, Any],
        outgoing: MessageSender,
        urls: UrlQuestions | None = None,
        *,
        connection: MessageSender | None = None,
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
        # Not the parameters, since the connection of a task keeps its channel until the task ends.
        self.token: str | int | None = (params.get("_meta") or {}).get("progressToken")
        self.outgoing = outgoing
        self._urls = urls
        self._release = release
        self.connection = connection
        self.session = session
        self.is_resumable = release is not None

    @property
    def capabilities(self) -> Mapping[str, Any]:
        """The capabilities that the client declared."""
        return self._client.capabilities

    @property
    def client(self) -> tuple[str, str] | None:
        """The name and the version that it reports."""
        return self._client.name

    def wants(self, level: LogLevel) -> bool:
        """Return whether it wants messages of this level."""
        wanted = self._client.listens_to
        return wanted is not None and LOG_LEVELS.index(level) >= LOG_LEVELS.index(wanted)

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Tell it something on the stream of the request."""
        await self.outgoing.notify(method, params)

    async def notify_connection(self, method: str, params: Mapping[str, Any]) -> None:
        """Tell it something on its connection, if that exists."""
        if self.connection is not None:
            await self.connection.notify(method, params)

    async def send_progress(self, done: float, total: float | None, message: str | None) -> None:
        """Send a progress notification, if the caller asked for them."""
        if self.token is not None:
            await self.outgoing.notify("notifications/progress", make_progress(self.token, done, total, message))

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

    async def record_visit(self, elicitation: str) -> None:
        """Remember that it was asked to open a URL."""
        if self._urls is not None:
            self._urls.add(elicitation, self.outgoing)

    async def notify_visited(self, elicitation: str) -> bool:
        """Tell it that all is done at a URL."""
        return self._urls is not None and await self._urls.complete(elicitation)
