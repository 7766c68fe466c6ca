"""What was sent to sessions over HTTP, kept where all processes can give it again (MCP 2025-11-25, basic/transports).

A session lives in one process. Where that process has gone, or a client comes back to another one, the session is not
there any more; what it was sent, and what it waited for when the process ended, is.
"""

from __future__ import annotations

import asyncio
import json
import secrets
from collections import deque
from typing import TYPE_CHECKING, Any, Final

from mcp.server.streamable_http import EventMessage, EventStore
from mcp.server.transport_security import TransportSecurityMiddleware
from mcp_types import jsonrpc_message_adapter
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from ..state.budget import BudgetExceeded
from ..state.store import StateLost
from .principal import ANONYMOUS, current
from .replay import text_of

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator

    from mcp.server.streamable_http import EventCallback
    from mcp.server.transport_security import TransportSecuritySettings
    from mcp_types import JSONRPCMessage
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from ..state.store import Store

_KIND: Final = "event"

_SECONDS: Final = 600.0
"""How long a message is kept."""

_EVENTS: Final = 512
"""Messages that are kept of one session."""

_BYTES: Final = 4 * 1024 * 1024
"""Bytes that the messages of one session may take together; its newest is kept however large it is."""

_PATIENCE: Final = 20.0
"""Seconds that a client is kept waiting for an answer that another process may still give; then it comes again."""

_PAUSE: Final = 0.25
"""Seconds between two looks for it."""

_RETRY: Final = 1000
"""Milliseconds after which the client should come again."""


class SharedReplay(EventStore):
    """The last messages of one session."""

    def __init__(self, store: Store) -> None:
        """Take where they are kept; it is the caller's session who asks now."""
        self._store = store
        self._session = secrets.token_urlsafe(18)
        self._principal = _principal()
        self._kept: deque[tuple[int, int]] = deque()
        self._number = 0

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """Keep a message; gives its id, which says where it is. While the store is lost, nothing is kept."""
        self._number += 1
        text = None if message is None else text_of(message)
        said = {"principal": self._principal, "stream": stream_id, "text": None if text is None else text.decode()}
        data = json.dumps({"number": self._number, **said}).encode()
        self._kept.append((self._number, len(data)))
        try:
            while len(self._kept) > _EVENTS or (len(self._kept) > 1 and sum(size for _, size in self._kept) > _BYTES):
                await self._store.delete(_KIND, self._key(self._kept.popleft()[0]))
            await self._store.create(
                _KIND,
                self._key(self._number),
                data,
                owner=self._session,
                ttl=_SECONDS,
                payer=self._principal,
                spare=True,
            )
        except (StateLost, BudgetExceeded):
            return ""  # an id that nobody can come back with
        return f"{self._session}.{self._number}/{stream_id}"

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Send what came after an event on its stream; gives the stream, `None` where nothing is known of it."""
        found = await missed(self._store, last_event_id)
        if found is None:
            return None
        stream, messages = found
        for name, text in messages:
            await send_callback(EventMessage(jsonrpc_message_adapter.validate_json(text, by_name=False), name))
        return stream

    def _key(self, number: int) -> str:
        return f"{self._session}.{number}"


async def missed(store: Store, last_event_id: str) -> tuple[str, list[tuple[str, str]]] | None:
    """The stream of an event, and the messages that came on it after that, with their ids, for who asks now.

    `None` where nothing is known of it.
    """
    place, _, stream = last_event_id.partition("/")
    session, _, number = place.rpartition(".")
    if not session or not number.isdecimal():
        return None
    try:
        kept: list[dict[str, Any]] = [json.loads(record.data) for _, record in await store.owned(_KIND, session)]
    except StateLost:
        return None
    own = [one for one in kept if one["stream"] == stream and one["principal"] == _principal()]
    if not own or len(number) > len(str(own[-1]["number"])):
        return None
    after = [one for one in own if one["number"] > int(number) and one["text"] is not None]
    return stream, [(f"{session}.{one['number']}/{stream}", one["text"]) for one in after]


class Resumption:
    """An ASGI layer for clients whose session is not in this process: it gives what they missed of an answer."""

    def __init__(self, app: ASGIApp, store: Store, security: TransportSecuritySettings) -> None:
        """Take the application below, where messages are kept, and whose requests are answered."""
        self._app = app
        self._store = store
        self._security = TransportSecurityMiddleware(security)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request on; where it is answered that there is no such session, look for what it missed."""
        request = Request(scope, receive)
        last = request.headers.get("last-event-id") if scope["method"] == "GET" else None
        if last is None:
            await self._app(scope, receive, send)
            return
        unsent: list[Message] = []

        async def hold(message: Message) -> None:
            if unsent or (message["type"] == "http.response.start" and message["status"] == 404):
                unsent.append(message)
            else:
                await send(message)

        await self._app(scope, receive, hold)
        if not unsent:
            return
        found = await self._security.validate_request(request) or await self._answer(last)
        if found is not None:
            await found(scope, receive, send)
            return
        for message in unsent:
            await send(message)

    async def _answer(self, last: str) -> Response | None:
        """What a client missed of the answer to one request; `None` where that is not known."""
        found = await missed(self._store, last)
        if found is None or found[0].startswith("_"):  # the SDK's own stream, which is no request's, has no end
            return None
        headers = {"Cache-Control": "no-cache, no-transform"}
        return StreamingResponse(self._events(last), media_type="text/event-stream", headers=headers)

    async def _events(self, last: str) -> AsyncGenerator[str, None]:
        loop = asyncio.get_running_loop()
        end = loop.time() + _PATIENCE
        while loop.time() < end:
            found = await missed(self._store, last)
            for name, text in found[1] if found is not None else ():
                last = name
                yield f"id: {name}\nevent: message\ndata: {text}\n\n"
                if _is_answer(text):
                    return
            await asyncio.sleep(_PAUSE)
        yield f"retry: {_RETRY}\nid: {last}\ndata: \n\n"


def _is_answer(text: str) -> bool:
    said: dict[str, Any] = json.loads(text)
    return "method" not in said


def _principal() -> str:
    return current(over_http=True, user=ANONYMOUS).key
