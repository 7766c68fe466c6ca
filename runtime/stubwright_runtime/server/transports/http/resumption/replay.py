"""In-memory event logs of HTTP sessions, for resumption (MCP 2025-11-25, basic/transports).

All sessions share one budget of bytes, so that abandoned sessions cannot fill the memory. When the budget is exhausted,
the principal with the most bytes loses its oldest messages.
"""

from __future__ import annotations

import re
import weakref
from collections import Counter, OrderedDict, deque
from itertools import count
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from .log import Position

if TYPE_CHECKING:
    from .log import Sending


_TOTAL: Final = 64 * 1024 * 1024
"""The maximum total size of all sessions' messages in bytes. The newest message is retained even if it is larger."""

_SESSION: Final = 4 * 1024 * 1024
"""The maximum total size of one session's messages in bytes. The newest message is retained even if it is larger."""

_EVENTS: Final = 512
"""The maximum number of retained messages per session."""

_EACH: Final = 512
"""The approximate memory overhead per message in bytes."""

_PRINCIPAL: Final = 16 * 1024 * 1024
"""The maximum total size in bytes of the messages in one principal's sessions."""

_ID: Final = re.compile(r"(0|[1-9][0-9]{0,8})/(.*)", re.DOTALL)

_Key: TypeAlias = tuple[int, int]
"""A session number, and a message number within the session."""


class _Event(NamedTuple):
    stream: str
    text: bytes | None

    @property
    def size(self) -> int:
        return _EACH + len(self.text or b"")


_NONE: Final[OrderedDict[_Key, _Event]] = OrderedDict()


class _Session(NamedTuple):
    number: int
    principal: str


class Archive:
    """The retained messages of all sessions, in order of age."""

    def __init__(self, size: int = _TOTAL, each: int = _PRINCIPAL) -> None:
        """Create an empty archive.

        Args:
            size: The maximum size of all messages in bytes.
            each: The maximum size of one principal's messages in bytes.
        """
        self._largest = size
        self._each = each
        self._events: dict[str, OrderedDict[_Key, _Event]] = {}
        self._sizes: Counter[int] = Counter()
        self._principals: Counter[str] = Counter()
        self._sessions = count(1)

    def open_session(self, principal: str = "", events: int = _EVENTS, size: int = _SESSION) -> Replay:
        """Return the log for a principal's new session. When the log is garbage-collected, its messages are deleted."""
        session = _Session(next(self._sessions), principal)
        numbers: deque[int] = deque()
        store = Replay(self, session, numbers, events, size)
        # A reference from the callback to the log would prevent its collection.
        weakref.finalize(store, self._forget, session, numbers).atexit = False
        return store

    @property
    def size(self) -> int:
        """The approximate size of all messages in bytes."""
        return self._principals.total()

    def measure(self, session: _Session) -> int:
        """Return the approximate size of a session's messages in bytes."""
        return self._sizes[session.number]

    def add(self, session: _Session, number: int, stream: str, text: bytes | None) -> None:
        """Add a message. If a limit is exceeded, drop old messages."""
        event, key = _Event(stream, text), (session.number, number)
        self._events.setdefault(session.principal, OrderedDict())[key] = event
        self._sizes[session.number] += event.size
        self._principals[session.principal] += event.size
        while self._principals[session.principal] > self._each and len(self._events[session.principal]) > 1:
            self._drop(session.principal, next(iter(self._events[session.principal])))
        while self.size > self._largest and self.size > event.size:
            others = [name for name, events in self._events.items() if len(events) > (key in events)]
            most = max(others, key=self._principals.__getitem__)
            self._drop(most, next(other for other in self._events[most] if other != key))

    def drop(self, session: _Session, number: int) -> None:
        """Drop a message if it is still retained."""
        self._drop(session.principal, (session.number, number))

    def get(self, session: _Session, number: int) -> _Event | None:
        """Return a message, or `None` if it was dropped."""
        return self._events.get(session.principal, _NONE).get((session.number, number))

    def _drop(self, principal: str, key: _Key) -> None:
        events = self._events.get(principal, _NONE)
        if (event := events.pop(key, None)) is None:
            return
        self._sizes[key[0]] -= event.size
        self._principals[principal] -= event.size
        if not events:
            del self._events[principal], self._principals[principal]

    def _forget(self, session: _Session, numbers: deque[int]) -> None:
        for number in numbers:
            self.drop(session, number)
        del self._sizes[session.number]


class Replay:
    """One session's event log."""

    def __init__(self, archive: Archive, session: _Session, numbers: deque[int], events: int, size: int) -> None:
        """Create a session's log, with the limits from `Archive.open_session`."""
        self._archive = archive
        self._session = session
        self._numbers = numbers
        self._most = events
        self._largest = size
        self._number = 0

    async def append(
        self,
        stream: str,
        message: bytes | None,
        *,
        is_answer: bool = False,  # noqa: ARG002 - a parameter of `EventLog`
    ) -> str:
        """Append a message to its stream and return its event ID. The message `None` marks the start of the stream."""
        self._number += 1
        self._archive.add(self._session, self._number, stream, message)
        self._numbers.append(self._number)
        while len(self._numbers) > self._most or (self._is_full() and len(self._numbers) > 1):
            self._archive.drop(self._session, self._numbers.popleft())
        return f"{self._number}/{stream}"

    async def find(self, last: str) -> Position | None:
        """Return an event ID's position, or `None` if this session has not sent the event."""
        parts = _ID.fullmatch(last)
        if parts is None or int(parts[1]) > self._number:
            return None
        return Position(parts[2], int(parts[1]))

    async def replay(self, position: Position, send: Sending) -> None:
        """Send the retained messages that follow a position on its stream."""
        for number in [number for number in self._numbers if number > position.number]:
            event = self._archive.get(self._session, number)
            if event is not None and event.stream == position.stream and event.text is not None:
                await send(event.text, f"{number}/{position.stream}")

    def _is_full(self) -> bool:
        return self._archive.measure(self._session) > self._largest
