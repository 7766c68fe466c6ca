"""The sessions of the older revisions over HTTP: who has which, how many there may be, and when they end.

Takes handshakes; gives sessions by their ids (MCP 2025-11-25, basic/transports, "Session Management"). The SDK gets one
of its own for a session when a request of it needs that, under the same id.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections import Counter
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ....state.budget import count_bytes

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from ....state.budget import Budget
    from ...direct.clients import Client
    from ...direct.runs import Run


@dataclass(slots=True, eq=False)
class Session:
    """One session.

    Attributes:
        id: Its id.
        owner: The principal whose requests may use it; `None` where callers have no token.
        client: Who has shaken hands.
        is_initialized: Whether the client has said that it is ready.
        runs: Its requests that are being answered directly.
        has_conversation: Whether the SDK has a session for it.
        opens: Held while the SDK gets one.
        timer: Looks whether it is idle.
        note_end: Notes how long it was there; `None` if nobody observes it.
    """

    id: str
    owner: Mapping[str, Any] | None
    client: Client
    is_initialized: bool = False
    runs: dict[str | int, Run] = field(default_factory=dict[str | int, "Run"])
    has_conversation: bool = False
    opens: asyncio.Lock = field(default_factory=asyncio.Lock)
    timer: asyncio.TimerHandle | None = None
    note_end: Callable[[], None] | None = None
    _under_way: int = 0
    _last: float = 0.0

    @contextmanager
    def in_use(self) -> Generator[None, None, None]:
        """Keep the session from ending by itself during the block."""
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            self._last = asyncio.get_running_loop().time()

    def idle_since(self) -> float:
        """Return when its last request ended, by the event loop's clock; infinite while one is under way."""
        return math.inf if self._under_way else self._last


class Sessions:
    """The sessions of one server."""

    def __init__(
        self, most: int, budget: Budget, idle: float, others: Callable[[], int], ended: Callable[[Session], None]
    ) -> None:
        """Say how many there may be, and how long.

        Args:
            most: How many may be open.
            budget: How many bytes their handshakes may have, of one caller and in all.
            idle: Seconds after which a session ends that has no request under way.
            others: How many more the SDK has opened by itself.
            ended: Called with each session that has ended.

        Raises:
            ValueError: A number is not positive.
        """
        if not (math.isfinite(idle) and idle > 0):
            raise ValueError("session_idle_timeout must be a positive, finite number of seconds")
        if most <= 0:
            raise ValueError("max_sessions must be a positive number of sessions")
        self._most = most
        self._budget = budget
        self._bytes: Counter[str] = Counter()
        """The bytes of the handshakes of open sessions, by callers."""
        self._idle = idle
        self._others = others
        self._ended = ended
        self._open: dict[str, Session] = {}

    def is_full(self) -> bool:
        """Tell whether no more may be opened."""
        return len(self._open) + self._others() >= self._most

    def has_room(self, client: Client, owner: Mapping[str, Any] | None) -> bool:
        """Return whether the budget of a caller allows one more session with its handshake."""
        own, total = self._bytes[_key(owner)], self._bytes.total()
        return self._budget.refuses(_size(client), own, total) is None

    def open(self, client: Client, owner: Mapping[str, Any] | None) -> Session:
        """Open one, for a client that shakes hands."""
        name = uuid4().hex
        session = Session(name, owner, client)
        self._open[name] = session
        self._bytes[_key(owner)] += _size(client)
        self._look(session, self._idle)
        return session

    def of(self, name: str, owner: Mapping[str, Any] | None) -> Session | None:
        """Return the session with an id, where it is the caller's."""
        session = self._open.get(name)
        return session if session is not None and session.owner == owner else None

    def end(self, session: Session) -> None:
        """End one."""
        if self._close(session.id) is not None:
            self._ended(session)

    def note_ends(self) -> None:
        """Note how long each was there, since the server ends."""
        for session in self._open.values():
            if session.note_end is not None:
                session.note_end()

    def forget(self, name: str) -> None:
        """Take note that the SDK has ended one."""
        self._close(name)

    def _close(self, name: str) -> Session | None:
        session = self._open.pop(name, None)
        if session is not None:
            key = _key(session.owner)
            self._bytes[key] -= _size(session.client)
            if not self._bytes[key]:
                del self._bytes[key]
        if session is not None and session.timer is not None:
            session.timer.cancel()  # it would keep the session in memory until it goes off
        if session is not None and session.note_end is not None:
            session.note_end()
        for run in () if session is None else [*session.runs.values()]:
            if not run.is_passed_on:  # the SDK cancels the others
                run.cancel()
        return session

    def _look(self, session: Session, seconds: float) -> None:
        session.timer = asyncio.get_running_loop().call_later(seconds, self._end_idle, session)

    def _end_idle(self, session: Session) -> None:
        if session.id not in self._open:
            return
        left = min(session.idle_since() + self._idle - asyncio.get_running_loop().time(), self._idle)
        if left > 0:
            self._look(session, left)
        else:
            self.end(session)


def _key(owner: Mapping[str, Any] | None) -> str:
    return json.dumps(owner, sort_keys=True, default=str)


def _size(client: Client) -> int:
    """Return the bytes that a session costs."""
    return count_bytes("", client.opening or b"")
