"""The channel through which a handler sends messages to the client."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ...mcp.vocabulary import LOG_LEVELS
from ..protocol.sender import make_log_message, make_progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from ...mcp.vocabulary import LogLevel
    from ..features.url_elicitation import UrlQuestions
    from ..protocol.sender import MessageSender
    from .lifecycle import Client


class ClientChannel:
    """Sends messages to the client that sent a request.

    After the client has disconnected, notifications are dropped and requests fail. The handler continues.

    Attributes:
        token: The progress token, if the client requested progress.
        outgoing: Sends messages on the request's stream.
        connection: Sends messages outside any request (MCP 2025-11-25 and earlier); `None` to drop them.
        session: The HTTP session ID (MCP 2025-11-25 and earlier).
        is_resumable: True if the client can reconnect for the response after the stream has closed.
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
        """Create a request's channel to `client`.

        Args:
            client: The client.
            params: The request's parameters, which can contain a progress token.
            outgoing: Sends messages on the request's stream.
            urls: The URL elicitations that the user has not completed.
            connection: Sends messages outside any request (MCP 2025-11-25 and earlier).
            session: The HTTP session ID.
            release: Closes the request's stream if the client can reconnect for the response.
        """
        self._client = client
        # The parameters are not stored, because a task keeps its channel until it finishes.
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
        """The client's name and version."""
        return self._client.name

    def wants(self, level: LogLevel) -> bool:
        """Return whether the client accepts log messages of this level."""
        wanted = self._client.log_level
        return wanted is not None and LOG_LEVELS.index(level) >= LOG_LEVELS.index(wanted)

    async def notify(self, method: str, params: Mapping[str, Any] | None) -> None:
        """Send a notification on the request's stream."""
        await self.outgoing.notify(method, params)

    async def notify_connection(self, method: str, params: Mapping[str, Any]) -> None:
        """Send a notification outside any request, if the client can receive it."""
        if self.connection is not None:
            await self.connection.notify(method, params)

    async def send_progress(self, done: float, total: float | None, message: str | None) -> None:
        """Send a progress notification, if the client requested progress."""
        if self.token is not None:
            await self.outgoing.notify("notifications/progress", make_progress(self.token, done, total, message))

    async def log(self, level: LogLevel, data: Any, logger: str | None) -> None:
        """Send a log message, if the client accepts its level."""
        if self.wants(level):
            await self.outgoing.notify("notifications/message", make_log_message(level, data, logger))

    async def subscribe(self, uri: str) -> None:
        """Subscribe the client to updates of a resource."""
        if self._client.subscriptions is not None:
            self._client.subscriptions.subscribe(uri)

    async def release(self) -> None:
        """Close the request's stream if the client can reconnect for the response."""
        if self._release is not None:
            self._release()

    async def request(self, method: str, params: Mapping[str, Any] | None) -> Mapping[str, Any]:
        """Send a request to the client and return its result."""
        return await self.outgoing.ask(method, params)

    async def record_elicitation(self, elicitation: str) -> None:
        """Record a URL elicitation that was sent, so that its completion can be reported to this client."""
        if self._urls is not None:
            self._urls.add(elicitation, self.outgoing)

    async def complete_elicitation(self, elicitation: str) -> bool:
        """Notify the client that a URL elicitation is complete. Return whether the client was notified."""
        return self._urls is not None and await self._urls.complete(elicitation)
