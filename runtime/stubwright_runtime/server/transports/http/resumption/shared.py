"""Messages to sessions over HTTP, kept in the store for all processes (MCP 2025-11-25, basic/transports).

A session lives in one process. If that process has ended, or a client comes back to another one, the session is not
there; its messages and its pending answers are. Each message has its own key, made of its principal, its session,
its stream and its number there. A client that comes back reads only the next ones, and an id that belongs to another
client, or was invented, finds nothing.
"""

from __future__ import annotations

import asyncio
import json
import re
import secrets
from contextlib import nullcontext, suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

from .....state.budget import BudgetExceeded
from .....state.store import StateLost
from ....core.principal import ANONYMOUS, find_current
from ..events import CONTENT, RETRY, as_event, wait_until_closed
from .awaited_sessions import LOOK, PATIENCE
from .log import LISTENING, Position

if TYPE_CHECKING:
    from starlette.types import Receive, Send

    from .....state.store import Store
    from .awaited_sessions import AwaitedSessions
    from .log import Sending

_KIND: Final = "event"

_SECONDS: Final = 600.0
"""The seconds for which a message is retained."""

_EVENTS: Final = 512
"""The maximum number of messages that are retained of one session."""

_BYTES: Final = 4 * 1024 * 1024
"""The maximum number of bytes of one session's messages; its newest is retained even if it is larger."""

_LARGE: Final = 256 * 1024
"""The size in bytes from which a message is not read before there is room for it."""

_ROOM: Final = 4
"""The maximum number of large messages in memory at a time."""

_CANCELLING: Final = 0.1
"""Seconds after which a cancellation is repeated."""

_SENDING: Final = 30.0
"""Seconds in which a client has to read a message; otherwise its connection is closed."""

_ID: Final = re.compile(r"([A-Za-z0-9_-]{24})\.([1-9][0-9]{0,8})/(.{1,256})")

_ANSWER: Final = "answer"
_Number: TypeAlias = "int | Literal['answer']"
"""The number of a message on its stream. The answer, the last one, is found without its number."""


@dataclass(frozen=True, slots=True)
class _Stream:
    """The stream of one request, which determines the keys of its messages."""

    principal: str
    session: str
    name: str

    def make_key(self, number: _Number) -> str:
        return json.dumps([self.principal, self.session, number, self.name])

    def make_id(self, number: _Number) -> str:
        """Return the event id of a message. That of the answer finds no messages, since none follow it."""
        return f"{self.session}.{number}/{self.name}"


class SharedReplay:
    """The last messages of one session."""

    def __init__(self, awaited: AwaitedSessions) -> None:
        """Take the sessions that clients wait for; the new session belongs to the current caller."""
        self._awaited = awaited
        self._store = awaited.store
        self._session = secrets.token_urlsafe(18)
        self._principal = _principal()
        self._kept: dict[tuple[_Stream, _Number], int] = {}
        self._size = 0
        self._numbers: dict[_Stream, int] = {}
        """The last number of each stream that is not answered."""
        self._last = 0
        self._storing = asyncio.Lock()
        awaited.add(self._session, self)

    async def keep(self, stream: str, message: bytes | None, *, is_answer: bool = False) -> str:
        """Keep a message, and return its id, which holds its position. While the store is lost, none is retained."""
        place = _Stream(self._principal, self._session, stream)
        try:
            async with self._storing:
                return place.make_id(await self._keep_next(place, message or b"", is_answer=is_answer))
        except (StateLost, BudgetExceeded):
            return ""  # an id that no client can come back with

    async def _keep_next(self, stream: _Stream, data: bytes, *, is_answer: bool) -> _Number:
        """Keep a message as the next one of its stream, and return its number. Raises StateLost and BudgetExceeded."""
        number = self._numbers.get(stream, self._last) + 1
        place: _Number = _ANSWER if is_answer else number
        while len(self._kept) >= _EVENTS or (self._kept and self._size + len(data) > _BYTES):
            await self._drop(*next(iter(self._kept)))
        await self._store.create(
            _KIND,
            stream.make_key(place),
            data,
            owner=self._session,
            ttl=_SECONDS,
            payer=self._principal,
            spare=True,
        )
        self._kept[stream, place] = len(data)
        self._size += len(data)
        self._last = max(self._last, number)
        if is_answer:
            self._numbers.pop(stream, None)
        else:
            self._numbers[stream] = number
        await self._awaited.announce(self._session)
        return place

    async def find(self, last: str) -> Position | None:
        """Return the position of a message, by its id; `None` if this session has sent none that late."""
        parts = _ID.fullmatch(last)
        if parts is None or (parts[1], _principal()) != (self._session, self._principal) or int(parts[2]) > self._last:
            return None
        return Position(parts[3], int(parts[2]))

    async def replay(self, position: Position, send: Sending) -> None:
        """Send the messages after a position on its stream, unless the store is lost."""
        stream, number = _Stream(self._principal, self._session, position.stream), position.number
        with suppress(StateLost):
            while (place := await _next(self._store, stream, number)) is not None:
                if (data := await _read(self._store, place.key)) is None:
                    return
                number += 1
                if data:
                    await send(data, stream.make_id(_ANSWER if place.is_last else number))
                if place.is_last:
                    return

    async def _drop(self, stream: _Stream, number: _Number) -> None:
        """Keep a message no longer. Raises StateLost."""
        await self._store.delete(_KIND, stream.make_key(number))
        self._size -= self._kept.pop((stream, number))


class _Place(NamedTuple):
    key: str
    size: int
    is_last: bool


async def _locate(store: Store, last_event_id: str) -> tuple[_Stream, int] | None:
    """Return the stream of an event and its number there; `None` if the current caller was sent none. Raises StateLost.

    That takes at most three short lookups for any id.
    """
    parts = _ID.fullmatch(last_event_id)
    if parts is None:
        return None
    stream, number = _Stream(_principal(), parts[1], parts[3]), int(parts[2])
    if await store.measure(_KIND, stream.make_key(number)) is None and await _next(store, stream, number) is None:
        return None
    return stream, number


async def _next(store: Store, stream: _Stream, number: int) -> _Place | None:
    """Return the place of the next message if it is stored, otherwise the place of the answer. Raises StateLost."""
    for place in (number + 1, _ANSWER):
        key = stream.make_key(place)
        if (size := await store.measure(_KIND, key)) is not None:
            return _Place(key, size, place == _ANSWER)
    return None


async def _read(store: Store, key: str) -> bytes | None:
    """Return a message that is retained. Raises StateLost."""
    record = await store.get(_KIND, key)
    return None if record is None else record.data


class Resumption:
    """Answers to clients whose session is not in this process: the messages that they missed."""

    def __init__(self, awaited: AwaitedSessions) -> None:
        """Take the sessions that clients wait for."""
        self._awaited = awaited
        self._store = awaited.store
        self._room = asyncio.Semaphore(_ROOM)

    async def answer(self, last: str, receive: Receive, send: Send) -> bool:
        """Send the messages after an event, until the answer is sent or the client leaves.

        Returns:
            True if the event was found; otherwise nothing was sent.
        """
        try:
            place = await _locate(self._store, last)
        except StateLost:
            return False
        if place is None or place[0].name == LISTENING:  # its end would not be seen here
            return False
        await send({"type": "http.response.start", "status": 200, "headers": [*CONTENT]})
        sending = asyncio.create_task(self._send_all(*place, send))
        leaving = asyncio.create_task(wait_until_closed(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            while not sending.done():  # Redis' library may report a cancellation as a lost connection
                sending.cancel()
                await asyncio.wait((sending,), timeout=_CANCELLING)
        if not sending.cancelled():
            sending.result()
        return True

    async def _send_all(self, stream: _Stream, number: int, send: Send) -> None:
        """Send the messages, and the id to come back with if the answer is not among them."""
        with suppress(TimeoutError):  # it takes nothing
            last = await self._send_rest(stream, number, send)
            rest = b"" if last is None else as_event(b"", stream.make_id(last), RETRY)
            await send({"type": "http.response.body", "body": rest})

    async def _send_rest(self, stream: _Stream, number: int, send: Send) -> int | None:
        """Send messages when they arrive, and return the number of the last one; `None` if it was the answer.

        Raises:
            TimeoutError: The client does not take a message.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + PATIENCE
        with self._awaited.watch(stream.session) as woken:
            try:
                # Before the first look, so that no message between the two goes unnoticed.
                await self._awaited.ask(stream.session)
                while True:
                    # Before the look, so that a message that comes during it ends the next wait.
                    woken.clear()
                    while (place := await _next(self._store, stream, number)) is not None:
                        async with self._room if place.size > _LARGE else nullcontext():
                            text = await _read(self._store, place.key)
                            if text is None:
                                return number
                            number += 1
                            if text:
                                event = as_event(text, stream.make_id(_ANSWER if place.is_last else number))
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
    return find_current(over_http=True, user=ANONYMOUS).key
