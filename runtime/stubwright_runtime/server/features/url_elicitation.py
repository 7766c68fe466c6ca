"""Questions that open a URL, and the clients to notify of completion (MCP 2025-11-25, client/elicitation).

From 2026-07-28 on no client is told: it comes back on its own.
"""

from __future__ import annotations

from typing import Final, Protocol

from ..protocol.outgoing import DisconnectedError

_MOST: Final = 1000
"""The maximum number of remembered questions. The oldest are forgotten, and their clients not notified."""


class UrlRequired(Exception):
    """The user must visit a URL before the request can go on; a handler raises this by `ctx.url_required`.

    Attributes:
        name: The question's name in the manifest.
        url: The URL.
        message: The text for the user.
        elicitation: The id that notifies the client of completion.
    """

    def __init__(self, name: str, url: str, message: str, elicitation: str) -> None:
        """Take the question."""
        super().__init__(message)
        self.name = name
        self.url = url
        self.message = message
        self.elicitation = elicitation


class UrlClient(Protocol):
    """A client that was asked to open a URL."""

    async def send_elicit_complete(self, elicitation_id: str, related_request_id: str | int | None, /) -> None:
        """Notify it of completion, on the stream of a request or on its connection."""


class UrlQuestions:
    """The questions of one server that are not complete, with the connections that were asked."""

    def __init__(self) -> None:
        """Begin without questions."""
        self._asked: dict[str, UrlClient] = {}

    def add(self, elicitation: str, client: UrlClient) -> None:
        """Remember a question. Raises ValueError if there is one with that id already."""
        if elicitation in self._asked:
            raise ValueError(f"a question with the id {elicitation!r} exists already; use a new id for each question")
        self._asked[elicitation] = client
        if len(self._asked) > _MOST:
            del self._asked[next(iter(self._asked))]

    async def complete(self, elicitation: str, request: str | int | None = None) -> bool:
        """Tell the client that was asked; return whether there was one.

        Args:
            elicitation: The id of the question.
            request: The request whose stream to use; `None` if that may have ended.
        """
        # Removed before the wait below, so that only one of two simultaneous calls notifies the client.
        client = self._asked.pop(elicitation, None)
        if client is None:
            return False
        import anyio

        try:
            await client.send_elicit_complete(elicitation, request)
        except (DisconnectedError, anyio.BrokenResourceError, anyio.ClosedResourceError):
            return False
        return True
