"""What was sent to sessions over HTTP, kept where all processes can give it again (MCP 2025-11-25, basic/transports).

A session lives in one process. Where that process has gone, or a client comes back to another one, the session is not
there any more; what it was sent, and what it waited for when the process ended, is. Each message has a key of its own,
from who may read it, its session, its stream and its number there: whoever comes back reads the next ones and nothing
else, and an id that somebody else was given, or that nobody was, leads nowhere.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

import anyio
from mcp_types import JSONRPCError, JSONRPCResponse
from starlette.requests import Request

from .....sdk.http import EventMessage, EventStore, TransportSecurityMiddleware
from .....state.budget import BudgetExceeded
from .....state.store import StateLost
from ....core.principal import ANONYMOUS, current
from .awaited import LOOK, PATIENCE
from .replay import Sent, text_of

if TYPE_CHECKING:

    from mcp_types import JSONRPCMessage
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

    from .....sdk.http import EventCallback, TransportSecuritySettings
    from .....state.store import Store
    from .awaited import Awaited

_KIND: Final = "event"

_SECONDS: Final = 600.0
"""How long a message is kept."""

_EVENTS: Final = 512
"""Messages that are kept of one session."""

_BYTES: Final = 4 * 1024 * 1024
"""Bytes that the messages of one session may take together; its newest is kept however large it is."""

_RETRY: Final = 1000
"""Milliseconds after which the client should come again."""

_LARGE: Final = 256 * 1024
"""Bytes of a message that is not read before there is room for it."""

_ROOM: Final = 4
"""Large messages that are in memory at once to be sent again."""

_SENDING: Final = 30.0
"""Seconds in which a client takes a message; one that does not is given up."""

_ID: Final = re.compile(r"([A-Za-z0-9_-]{24})\.([1-9][0-9]{0,8})/(.{1,256})")

_ANSWER: Final = "answer"
_Number: TypeAlias = "int | Literal['answer']"
"""The number of a message on its stream. The answer, the last one, is found without its number."""


@dataclass(frozen=True, slots=True)
class _Stream:
    """The messages that belong to one request, and where they are kept."""

    principal: str
    session: str
    name: str

    def key(self, number: _Number) -> str:
        return json.dumps([self.principal, self.session, number, self.name])

    def id(self, number: _Number) -> str:
        """Return what the client is told to come back with; after the answer, nothing comes."""
        return f"{self.session}.{number}/{self.name}"


class SharedReplay(EventStore):
    """The last messages of one session."""

    def __init__(self, awaited: Awaited) -> None:
        """Take who waits for messages; it is the caller's session who asks now."""
        self._awaited = awaited
        self._store = awaited.store
        self._session = secrets.token_urlsafe(18)
        self._principal = _principal()
        self._kept: dict[tuple[_Stream, _Number], int] = {}
        self._size = 0
        self._numbers: dict[_Stream, int] = {}
        """The last number of each stream that is not answered."""
        self._last = 0
        self._resumed: set[_Stream] = set()
        self._storing = asyncio.Lock()
        awaited.add(self._session, self)

    async def store_event(self, stream_id: str, message: JSONRPCMessage | None) -> str:
        """Keep a message; gives its id, which says where it is. While the store is lost, nothing is kept."""
        stream = _Stream(self._principal, self._session, stream_id)
        try:
            async with self._storing:
                return stream.id(await self._store_next(stream, message))
        except (StateLost, BudgetExceeded):
            return ""  # an id that nobody can come back with

    async def _store_next(self, stream: _Stream, message: JSONRPCMessage | None) -> _Number:
        """Keep a message as the next one of its stream; gives its number. Raises StateLost and BudgetExceeded."""
        if message is None and (stream, _ANSWER) in self._kept:
            if stream in self._resumed:  # by a client that is sent the answer again
                self._resumed.discard(stream)
                return _ANSWER
            await self._drop(stream, _ANSWER)  # the client uses the id of its request for another one
        number = self._numbers.get(stream, self._last) + 1
        place: _Number = _ANSWER if isinstance(message, JSONRPCResponse | JSONRPCError) else number
        data = b"" if message is None else text_of(message) or b""
        while len(self._kept) >= _EVENTS or (self._kept and self._size + len(data) > _BYTES):
            await self._drop(*next(iter(self._kept)))
        await self._store.create(
            _KIND,
            stream.key(place),
            data,
            owner=self._session,
            ttl=_SECONDS,
            payer=self._principal,
            spare=True,
        )
        self._kept[stream, place] = len(data)
        self._size += len(data)
        self._last = max(self._last, number)
        if place == _ANSWER:
            self._numbers.pop(stream, None)
        else:
            self._numbers[stream] = number
        await self._awaited.tell(self._session)
        return place

    async def replay_events_after(self, last_event_id: str, send_callback: EventCallback) -> str | None:
        """Send what came after an event on its stream; gives the stream, `None` where nothing is known of it."""
        try:
            if (position := await _locate(self._store, last_event_id)) is None:
                return None
            stream, number = position
            while (place := await _next(self._store, stream, number)) is not None:
                if (text := await _read(self._store, place.key)) is None:
                    break
                number += 1
                if text:
                    await send_callback(EventMessage(Sent.of(text), stream.id(_ANSWER if place.is_last else number)))
                if place.is_last:
                    break
        except StateLost:
            return None
        if (stream, _ANSWER) in self._kept:
            self._resumed.add(stream)
        return stream.name

    async def _drop(self, stream: _Stream, number: _Number) -> None:
        """Keep a message no longer. Raises StateLost."""
        await self._store.delete(_KIND, stream.key(number))
        self._size -= self._kept.pop((stream, number))
        if number == _ANSWER:
            self._resumed.discard(stream)


class _Place(NamedTuple):
    key: str
    size: int
    is_last: bool


async def _locate(store: Store, last_event_id: str) -> tuple[_Stream, int] | None:
    """Return the stream of an event and its number there; `None` if who asks now was sent no such event. Raises
    StateLost.

    That takes three short looks, whatever the id is and however much is kept.
    """
    parts = _ID.fullmatch(last_event_id)
    if parts is None:
        return None
    stream, number = _Stream(_principal(), parts[1], parts[3]), int(parts[2])
    if await store.size(_KIND, stream.key(number)) is None and await _next(store, stream, number) is None:
        return None
    return stream, number


async def _next(store: Store, stream: _Stream, number: int) -> _Place | None:
    """Return where the next message is, if it is kept; otherwise where the answer is. Raises StateLost."""
    for place in (number + 1, _ANSWER):
        key = stream.key(place)
        if (size := await store.size(_KIND, key)) is not None:
            return _Place(key, size, place == _ANSWER)
    return None


async def _read(store: Store, key: str) -> str | None:
    """Return the text of a message that is kept. Raises StateLost."""
    record = await store.get(_KIND, key)
    return None if record is None else record.data.decode()


class Resumption:
    """An ASGI layer for clients whose session is not in this process: it gives what they missed of an answer."""

    def __init__(self, app: ASGIApp, awaited: Awaited, security: TransportSecuritySettings) -> None:
        """Take the application below, who waits for messages, and whose requests are answered."""
        self._app = app
        self._awaited = awaited
        self._store = awaited.store
        self._security = TransportSecurityMiddleware(security)
        self._room = asyncio.Semaphore(_ROOM)

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
        if (refusal := await self._security.validate_request(request)) is not None:
            await refusal(scope, receive, send)
        elif (position := await self._find(last)) is not None:
            await self._answer(*position, receive, send)
        else:
            for message in unsent:
                await send(message)

    async def _find(self, last: str) -> tuple[_Stream, int] | None:
        """Return what a client can be told the rest of."""
        try:
            position = await _locate(self._store, last)
        except StateLost:
            return None
        # The SDK's own stream, which is no request's, has no end.
        return None if position is None or position[0].name.startswith("_") else position

    async def _answer(self, stream: _Stream, number: int, receive: Receive, send: Send) -> None:
        """Send what came after a message, until the answer is sent or the client leaves."""
        headers = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-cache, no-transform")]
        await send({"type": "http.response.start", "status": 200, "headers": headers})
        async with anyio.create_task_group() as group:

            async def leave() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                group.cancel_scope.cancel()

            group.start_soon(leave)
            try:
                last = await self._send_rest(stream, number, send)
                rest = b"" if last is None else f"retry: {_RETRY}\nid: {stream.id(last)}\ndata: \n\n".encode()
                await send({"type": "http.response.body", "body": rest})
            except TimeoutError:  # it takes nothing
                pass
            group.cancel_scope.cancel()

    async def _send_rest(self, stream: _Stream, number: int, send: Send) -> int | None:
        """Send what comes; gives the number of the last message, `None` where it was the answer.

        Raises:
            TimeoutError: The client takes nothing.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE
        with self._awaited.waiting(stream.session) as woken:
            try:
                await self._awaited.ask(stream.session)
                while True:
                    woken.clear()
                    while (place := await _next(self._store, stream, number)) is not None:
                        async with self._room if place.size > _LARGE else nullcontext():
                            text = await _read(self._store, place.key)
                            if text is None:
                                return number
                            number += 1
                            if text:
                                name = stream.id(_ANSWER if place.is_last else number)
                                event = f"id: {name}\nevent: message\ndata: {text}\n\n".encode()
                                async with asyncio.timeout(_SENDING):
                                    await send({"type": "http.response.body", "body": event, "more_body": True})
                        if place.is_last:
                            return None
                    if (left := end - loop.time()) <= 0:
                        return number
                    try:
                        async with asyncio.timeout(min(LOOK, left)):
                            await woken.wait()
                    except TimeoutError:
                        await self._awaited.ask(stream.session)
            except StateLost:
                return number


def _principal() -> str:
    return current(over_http=True, user=ANONYMOUS).key
