"""How many streams callers may have open that only wait, and what those hear who want one more.

Takes callers; gives each a place for as long as a stream of theirs is open, or refuses it. Over HTTP a refusal has the
status and the headers that say when to come again; on standard input and output its words alone.
"""

from __future__ import annotations

from collections import Counter
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response

from ....mcp.errors import INTERNAL_ERROR, ProtocolError
from ...core.principal import ANONYMOUS, current
from ...protocol.messages import error_response

if TYPE_CHECKING:
    from collections.abc import Generator

    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ...core.principal import Principal

LISTENERS: Final = 1000
"""Streams of `subscriptions/listen` that may be open."""

LISTENERS_EACH: Final = 100
"""How many of these one caller may have."""

_RESUMED: Final = 500
"""Requests with `Last-Event-ID` that may be open."""

_RESUMED_EACH: Final = 16
"""How many of these one caller may have."""

_AGAIN: Final = 5
"""Seconds after which whoever is refused may try again."""

_REFUSED: Final = "stubwright.refused"
"""Where the scope of a request says why it was refused."""


class TooManyStreamsError(Exception):
    """A stream more than may be open.

    Attributes:
        message: What the caller is told.
        status: The status of the answer over HTTP.
    """

    def __init__(self, message: str, status: int) -> None:
        """Say what the caller is told."""
        super().__init__(message)
        self.message = message
        self.status = status

    def note(self, scope: Scope) -> None:
        """Have the answer to a request say it in its status, too."""
        scope[_REFUSED] = self


class Streams:
    """The open streams of one kind."""

    def __init__(self, most: int, each: int) -> None:
        """Say how many there may be, and how many of one caller. Callers whom nothing tells apart share the first.

        Raises:
            ValueError: One of the two is not positive.
        """
        if most < 1 or each < 1:
            raise ValueError(f"at least one stream must be allowed, not {min(most, each)}")
        self._most = most
        self._each = each
        self._open: Counter[str] = Counter()

    @contextmanager
    def opened(self, principal: Principal) -> Generator[None, None, None]:
        """The length of a stream. Raises TooManyStreamsError."""
        if principal.kind != "anonymous" and self._open[principal.key] >= self._each:
            raise TooManyStreamsError(f"You have {self._each} streams open. Close one first, or try again later.", 429)
        if self._open.total() >= self._most:
            raise TooManyStreamsError("The server has too many open streams. Try again later.", 503)
        self._open[principal.key] += 1
        try:
            yield
        finally:
            self._open[principal.key] -= 1
            if not self._open[principal.key]:
                del self._open[principal.key]


class Bounded:
    """An ASGI layer that bounds how many streams are resumed at once, and says in HTTP what was refused."""

    def __init__(self, app: ASGIApp, *, every_get: bool = False) -> None:
        """Take the application that has the streams; without sessions, whose streams are bounded, each GET counts."""
        self._app = app
        self._every_get = every_get
        self._resumed = Streams(_RESUMED, _RESUMED_EACH)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on, or refuse it."""
        is_get = scope["type"] == "http" and scope["method"] == "GET"
        if not is_get or not (self._every_get or "last-event-id" in Headers(scope=scope)):
            await self._app(scope, receive, _with_status(scope, send))
            return
        try:
            with self._resumed.opened(current(over_http=True, user=ANONYMOUS)):
                await self._app(scope, receive, send)
        except TooManyStreamsError as refusal:
            body = error_response(None, ProtocolError(INTERNAL_ERROR, refusal.message))
            headers = {"Retry-After": str(_AGAIN)}
            await Response(body, refusal.status, headers, "application/json")(scope, receive, send)


def _with_status(scope: Scope, send: Send) -> Send:
    """Send a response; with another status where its request was refused here."""

    async def sent(message: Message) -> None:
        refusal = scope.get(_REFUSED)
        if message["type"] == "http.response.start" and isinstance(refusal, TooManyStreamsError):
            headers = MutableHeaders(raw=[*message["headers"]])
            headers["retry-after"] = str(_AGAIN)
            message = {**message, "status": refusal.status, "headers": headers.raw}
        await send(message)

    return sent
