"""How many streams callers may resume at once, and the status and headers of a refusal of one more.

Takes and gives ASGI; who has how many open is counted in `execution/streams.py`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response

from ...core.principal import ANONYMOUS, current
from ...execution.streams import AGAIN, REFUSED, Streams, TooManyStreamsError
from ...protocol.messages import error_response

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

_RESUMED: Final = 500
"""Requests with `Last-Event-ID` that may be open."""

_RESUMED_EACH: Final = 16
"""How many of these one caller may have."""


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
            body = error_response(None, refusal)
            headers = {"Retry-After": str(AGAIN)}
            await Response(body, refusal.status, headers, "application/json")(scope, receive, send)


def _with_status(scope: Scope, send: Send) -> Send:
    """Send a response; with another status where its request was refused here."""

    async def sent(message: Message) -> None:
        refusal = scope.get(REFUSED)
        if message["type"] == "http.response.start" and isinstance(refusal, TooManyStreamsError):
            headers = MutableHeaders(raw=[*message["headers"]])
            headers["retry-after"] = str(AGAIN)
            message = {**message, "status": refusal.status, "headers": headers.raw}
        await send(message)

    return sent
