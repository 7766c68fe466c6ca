"""Tracks URL elicitations and notifies clients when one completes (MCP 2025-11-25, client/elicitation).

In MCP 2026-07-28 and later, clients repeat the request without a notification.
"""

from __future__ import annotations

from typing import Final, Protocol

from ..protocol.sender import DisconnectedError

_MAX_PENDING: Final = 1000
"""The maximum number of incomplete elicitations. The oldest are dropped; their clients are not notified."""


class UrlRequired(Exception):
    """The user must visit a URL before the request can continue. Created by `ctx.url_required`.

    Attributes:
        name: The question's name in the manifest.
        url: The http or https URL.
        message: The message to the user.
        elicitation: The elicitation ID, which the completion notification contains.
    """

    def __init__(self, name: str, url: str, message: str, elicitation: str) -> None:
        super().__init__(message)
        self.name = name
        self.url = url
        self.message = message
        self.elicitation = elicitation


class UrlClient(Protocol):
    """A connected client that was asked to open a URL."""

    async def send_elicit_complete(self, elicitation_id: str, related_request_id: str | int | None, /) -> None:
        """Notify the client that an elicitation completed, on a request's stream or on the connection's own."""


class UrlQuestions:
    """One server's incomplete URL elicitations and their clients."""

    def __init__(self) -> None:
        self._asked: dict[str, UrlClient] = {}

    def add(self, elicitation: str, client: UrlClient) -> None:
        """Record that a client was asked to open a URL. Raises ValueError if the ID is already in use."""
        if elicitation in self._asked:
            raise ValueError(f"the elicitation ID {elicitation!r} is already in use; use a new ID for each elicitation")
        self._asked[elicitation] = client
        if len(self._asked) > _MAX_PENDING:
            del self._asked[next(iter(self._asked))]

    async def complete(self, elicitation: str, request: str | int | None = None) -> bool:
        """Notify the client that an elicitation completed, and return whether a client was notified.

        Args:
            elicitation: The elicitation ID.
            request: The ID of the request whose stream to use; `None` if the request may have ended.
        """
        # Removed before the await, so that only one of two simultaneous calls notifies the client.
        client = self._asked.pop(elicitation, None)
        if client is None:
            return False
        import anyio

        try:
            await client.send_elicit_complete(elicitation, request)
        except (DisconnectedError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return False
        return True
