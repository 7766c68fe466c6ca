"""Pending URL elicitations; notifies their clients of completion (MCP 2025-11-25, client/elicitation).

In MCP 2026-07-28 and later, clients retry without a notification.
"""

from __future__ import annotations

from typing import Final, Protocol

from ..protocol.sender import DisconnectedError

_MAX_PENDING: Final = 1000
"""The maximum number of pending elicitations; the oldest are dropped without a notification."""


class UrlRequired(Exception):
    """The user must visit a URL before the request can continue; created by `ctx.url_required`.

    Attributes:
        name: The question's name in the manifest.
        url: The URL.
        message: The message to the user.
        elicitation: The elicitation ID, for the completion notification.
    """

    def __init__(self, name: str, url: str, message: str, elicitation: str) -> None:
        super().__init__(message)
        self.name = name
        self.url = url
        self.message = message
        self.elicitation = elicitation


class UrlClient(Protocol):
    """A client that was asked to open a URL."""

    async def send_elicit_complete(self, elicitation_id: str, related_request_id: str | int | None, /) -> None:
        """Notify the client of completion on a request's stream or on its connection."""


class UrlQuestions:
    """One server's pending URL elicitations, with their clients."""

    def __init__(self) -> None:
        self._asked: dict[str, UrlClient] = {}

    def add(self, elicitation: str, client: UrlClient) -> None:
        """Add an elicitation. Raises ValueError if the ID exists."""
        if elicitation in self._asked:
            raise ValueError(f"a question with the ID {elicitation!r} already exists; use a new ID for each question")
        self._asked[elicitation] = client
        if len(self._asked) > _MAX_PENDING:
            del self._asked[next(iter(self._asked))]

    async def complete(self, elicitation: str, request: str | int | None = None) -> bool:
        """Notify the client of completion; return whether a client was notified.

        Args:
            elicitation: The elicitation ID.
            request: The request whose stream to use; `None` if it may have finished.
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
