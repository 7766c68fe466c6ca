"""Handles URLs that a server asks a person to visit, and their completion (MCP 2025-11-25, client/elicitation)."""

from __future__ import annotations

import inspect
from collections import OrderedDict
from typing import TYPE_CHECKING, Any, Final

from ...mcp.elicitation_answers import Accepted
from .questions import Question

if TYPE_CHECKING:
    from collections.abc import Sequence

    from anyio import Event
    from mcp.client.session import IncomingMessage
    from mcp_types import ElicitRequestURLParams

    from .questions import OnQuestion

_MOST: Final = 256
"""The maximum number of stored questions, including questions that the server completes before they are asked."""

_PATIENCE: Final = 300.0
"""Seconds to wait for a completion notification, which may never arrive, before resending the request."""


class UrlElicitation:
    """Asks a person to visit the URLs that one connection's server requires."""

    def __init__(self, on_question: OnQuestion) -> None:
        self._on_question = on_question
        self._done: OrderedDict[str, Event] = OrderedDict()

    def make_question(self, params: ElicitRequestURLParams, key: str | None = None) -> Question:
        """Convert `elicitation/create` parameters to a question."""
        known = params.elicitation_id
        done = None if known is None else self._event(known)
        return Question(params.message, url=params.url, key=key, elicitation=known, _done=done)

    async def on_message(self, message: IncomingMessage) -> None:
        """Record the completion that a server message reports. The SDK calls it as `message_handler`."""
        from mcp_types import ElicitCompleteNotification

        if isinstance(message, ElicitCompleteNotification):
            self._event(message.params.elicitation_id).set()

    async def open_urls(self, elicitations: Sequence[ElicitRequestURLParams]) -> bool:
        """Ask a person to visit URLs, and return whether the server's request can be resent.

        Wait for the server's completion notification for each URL, up to five minutes.
        """
        import anyio

        for params in elicitations:
            question = self.make_question(params)
            result: Any = self._on_question(question)
            answer = await result if inspect.isawaitable(result) else result
            if not isinstance(answer, Accepted):
                return False
            if question.elicitation is not None:
                with anyio.move_on_after(_PATIENCE):
                    await question.completed()
        return True

    def _event(self, elicitation: str) -> Event:
        import anyio

        event = self._done.setdefault(elicitation, anyio.Event())
        self._done.move_to_end(elicitation)
        if len(self._done) > _MOST:
            self._done.popitem(last=False)
        return event
