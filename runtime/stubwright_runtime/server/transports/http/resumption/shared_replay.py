"""Event logs of HTTP sessions in the store, for all processes (MCP 2025-11-25, basic/transports).

A session exists in one process, but its messages and responses remain available if that process exits or a client
reconnects to another one. A message's key consists of its principal, session, stream and number. A client that
reconnects receives only the messages after the last one it received. Other callers' event IDs and invented ones are not
found.
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
from ....core.principal import find_current
from ..events import EVENT_HEADERS, RETRY, encode_event, wait_until_closed
from .log import LISTENING, Position
from .session_announcer import MAX_WAIT, POLL_INTERVAL

if TYPE_CHECKING:
    from starlette.types import Receive, Send

    from .....state.store import Store
    from .log import Sending
    from .session_announcer import SessionAnnouncer

_KIND: Final = "event"

_SECONDS: Final = 600.0
"""Seconds after which a stored message expires."""

_EVENTS: Final = 512
"""The maximum number of stored messages per session."""

_BYTES: Final = 4 * 1024 * 1024
"""The maximum total size of one session's messages in bytes. The newest message is retained even if it is larger."""

_LARGE: Final = 256 * 1024
"""The size above which a message counts as large, in bytes."""

_ROOM: Final = 4
"""The maximum number of large messages that are read into memory at a time."""

_CANCELLING: Final = 0.1
"""Seconds after which a task that is still running is cancelled again."""

_SENDING: Final = 30.0
"""Seconds to send one message. After that, a client that does not read is disconnected."""

_ID: Final = re.compile(r"([A-Za-z0-9_-]{24})\.([1-9][0-9]{0,8})/(.{1,256})")

_ANSWER: Final = "answer"
_Number: TypeAlias = "int | Literal['answer']"
"""A message's number in its stream. The response, which is the last message, has a constant instead."""


@dataclass(frozen=True, slots=True)
class _Stream:
    principal: str
    session: str
    name: str

    def make_key(self, number: _Number) -> str:
        return json.dumps([self.principal, self.session, number, self.name])

    def make_id(self, number: _Number) -> str:
        """Return a message's event ID.

        The ID of the response never matches `_ID`, because a client does not resume after the response.
        """
        return f"{self.session}.{number}/{self.name}"


class SharedReplay:
    """A session's event log in the store."""

    def __init__(self, announcer: SessionAnnouncer) -> None:
        """Create the log for a new session of the current caller."""
        self._announcer = announcer
        self._store = announcer.store
        self._session = secrets.token_urlsafe(18)
        self._current_principal_key = _current_principal_key()
        self._stored: dict[tuple[_Stream, _Number], int] = {}
        self._size = 0
        self._numbers: dict[_Stream, int] = {}
        """The number of the last message in each open stream."""
        self._last = 0
        self._storing = asyncio.Lock()
        announcer.add(self._session, self)

    async def append(self, stream: str, message: bytes | None, *, is_answer: bool = False) -> str:
        """Store a message and return its event ID, or an empty string if the store is unavailable or full."""
        place = _Stream(self._current_principal_key, self._session, stream)
        try:
            async with self._storing:
                return place.make_id(await self._append_next(place, message or b"", is_answer=is_answer))
        except (StateLost, BudgetExceeded):
            return ""

    async def _append_next(self, stream: _Stream, data: bytes, *, is_answer: bool) -> _Number:
        """Store a stream's next message and return its number. Raises StateLost and BudgetExceeded."""
        number = self._numbers.get(stream, self._last) + 1
        place: _Number = _ANSWER if is_answer else number
        while len(self._stored) >= _EVENTS or (self._stored and self._size + len(data) > _BYTES):
            await self._drop(*next(iter(self._stored)))
        await self._store.create(
            _KIND,
            stream.make_key(place),
            data,
            owner=self._session,
            ttl=_SECONDS,
            payer=self._current_principal_key,
            spare=True,
        )
        self._stored[stream, place] = len(data)
        self._size += len(data)
        self._last = max(self._last, number)
        if is_answer:
            self._numbers.pop(stream, None)
        else:
            self._numbers[stream] = number
        await self._announcer.announce(self._session)
        return place

    async def find(self, last: str) -> Position | None:
        """Return an event ID's position, or `None` if this session has not sent the event."""
        parts = _ID.fullmatch(last)
        if (
            parts is None
            or (parts[1], _current_principal_key()) != (self._session, self._current_principal_key)
            or int(parts[2]) > self._last
        ):
            return None
        return Position(parts[3], int(parts[2]))

    async def replay(self, position: Position, send: Sending) -> None:
        """Send the stored messages that follow a position on its stream. Stop if the store becomes unavailable."""
        stream, number = _Stream(self._current_principal_key, self._session, position.stream), position.number
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
        await self._store.delete(_KIND, stream.make_key(number))
        self._size -= self._stored.pop((stream, number))


class _Place(NamedTuple):
    key: str
    size: int
    is_last: bool


async def _locate(store: Store, last_event_id: str) -> tuple[_Stream, int] | None:
    """Return an event's stream and number, or `None` if the current caller did not receive the event. Raises StateLost.

    For any ID, the search makes at most three short lookups in the store.
    """
    parts = _ID.fullmatch(last_event_id)
    if parts is None:
        return None
    stream, number = _Stream(_current_principal_key(), parts[1], parts[3]), int(parts[2])
    if await store.measure(_KIND, stream.make_key(number)) is None and await _next(store, stream, number) is None:
        return None
    return stream, number


async def _next(store: Store, stream: _Stream, number: int) -> _Place | None:
    """Return the location of the message after `number`, else of the response, else `None`. Raises StateLost."""
    for place in (number + 1, _ANSWER):
        key = stream.make_key(place)
        if (size := await store.measure(_KIND, key)) is not None:
            return _Place(key, size, place == _ANSWER)
    return None


async def _read(store: Store, key: str) -> bytes | None:
    record = await store.get(_KIND, key)
    return None if record is None else record.data


class Resumption:
    """Resumes streams that belong to sessions in other processes."""

    def __init__(self, announcer: SessionAnnouncer) -> None:
        """Create a resumption. `announcer` reports new messages in other processes' sessions."""
        self._announcer = announcer
        self._store = announcer.store
        self._room = asyncio.Semaphore(_ROOM)

    async def answer(self, last: str, receive: Receive, send: Send) -> bool:
        """Send the messages that follow an event, up to the response or until the client disconnects.

        Returns:
            True if the event was found; if false, nothing was sent.
        """
        try:
            place = await _locate(self._store, last)
        except StateLost:
            return False
        if place is None or place[0].name == LISTENING:  # this process cannot detect the end of the session
            return False
        await send({"type": "http.response.start", "status": 200, "headers": [*EVENT_HEADERS]})
        sending = asyncio.create_task(self._send_all(*place, send))
        leaving = asyncio.create_task(wait_until_closed(receive))
        try:
            await asyncio.wait((sending, leaving), return_when=asyncio.FIRST_COMPLETED)
        finally:
            leaving.cancel()
            while not sending.done():  # redis-py can replace a cancellation by a connection error
                sending.cancel()
                await asyncio.wait((sending,), timeout=_CANCELLING)
        if not sending.cancelled():
            sending.result()
        return True

    async def _send_all(self, stream: _Stream, number: int, send: Send) -> None:
        """Send the messages after `number`. If the response is not stored yet, end with an event ID for resumption."""
        with suppress(TimeoutError):  # the client does not read
            last = await self._send_rest(stream, number, send)
            rest = b"" if last is None else encode_event(b"", stream.make_id(last), RETRY)
            await send({"type": "http.response.body", "body": rest})

    async def _send_rest(self, stream: _Stream, number: int, send: Send) -> int | None:
        """Send messages as they arrive. Return the number of the last message, or `None` after the response.

        Raises:
            TimeoutError: The client did not read a message within `_SENDING` seconds.
        """
        loop = asyncio.get_running_loop()
        end = loop.time() + MAX_WAIT
        with self._announcer.watch(stream.session) as woken:
            try:
                # Ask before the first lookup, so that no message in between is missed.
                await self._announcer.ask(stream.session)
                while True:
                    # Clear before the lookup, so that a message that arrives during the lookup ends the next wait.
                    woken.clear()
                    while (place := await _next(self._store, stream, number)) is not None:
                        async with self._room if place.size > _LARGE else nullcontext():
                            text = await _read(self._store, place.key)
                            if text is None:
                                return number
                            number += 1
                            if text:
                                event = encode_event(text, stream.make_id(_ANSWER if place.is_last else number))
                                async with asyncio.timeout(_SENDING):
                                    await send({"type": "http.response.body", "body": event, "more_body": True})
                        if place.is_last:
                            return None
                    if (left := end - loop.time()) <= 0:
                        return number
                    try:
                        async with asyncio.timeout(min(POLL_INTERVAL, left)):
                            await woken.wait()
                    except TimeoutError:
                        await self._announcer.ask(stream.session)
            except StateLost:
                return number


def _current_principal_key() -> str:
    return find_current().key
