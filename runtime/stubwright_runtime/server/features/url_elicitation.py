"""Questions that open a URL: whom to tell when what happens there is complete (MCP 2025-11-25, client/elicitation).

Takes the connections that were asked; tells them, once, during a request or after it. From 2026-07-28 on nobody is
told: the client comes back by itself.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from ...sdk.requests import ServerSession

_MOST: Final = 1000
"""Questions that are remembered; of more, the oldest are forgotten, and their clients hear nothing."""


class UrlRequired(Exception):
    """The request cannot go on before the user has been at a URL; a handler raises what `ctx.url_required` gives.

    Attributes:
        name: The question's name in the manifest.
        url: The URL.
        message: What the user reads.
        elicitation: The id by which the client is told that all is done there.
    """

    def __init__(self, name: str, url: str, message: str, elicitation: str) -> None:
        """Say where, and why."""
        super().__init__(message)
        self.name = name
        self.url = url
        self.message = message
        self.elicitation = elicitation


class UrlQuestions:
    """The questions of one server that are not complete, with the connections that were asked."""

    def __init__(self) -> None:
        """None yet."""
        self._asked: dict[str, ServerSession] = {}

    def add(self, elicitation: str, session: ServerSession) -> None:
        """Remember a question. Raises ValueError where there is one of that id already."""
        if elicitation in self._asked:
            raise ValueError(f"a question with the id {elicitation!r} exists already; use a new id for each question")
        self._asked[elicitation] = session
        if len(self._asked) > _MOST:
            del self._asked[next(iter(self._asked))]

    async def complete(self, elicitation: str, request: str | int | None = None) -> bool:
        """Tell the client that was asked; whether there is one to tell.

        Args:
            elicitation: The id of the question.
            request: The request on whose stream to tell it; `None` where that may be over.
        """
        session = self._asked.pop(elicitation, None)
        if session is None:
            return False
        import anyio

        try:
            await session.send_elicit_complete(elicitation, request)
        except (anyio.BrokenResourceError, anyio.ClosedResourceError):
            return False
        return True
