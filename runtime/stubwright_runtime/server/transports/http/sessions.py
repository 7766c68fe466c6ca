"""The sessions of the older revisions over HTTP: their owners, their messages, and their end."""

from __future__ import annotations

import asyncio
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ....state.budget import count_bytes
from ...protocol.changes import ChangeNotifier
from ...protocol.client_subscriptions import ClientSubscriptions
from ...protocol.outgoing import MessageSender, Questions
from .events import AnswerStream, EventStream
from .posts.accounts import Accounts, make_key
from .resumption.log import LISTENING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from ....state.budget import Budget
    from ...protocol.client_subscriptions import Change, ChangeLog
    from ..clients import Client
    from .posts.accounts import Account
    from .posts.post import Post
    from .resumption.log import EventLog


class Session:
    """One session.

    Attributes:
        id: Its id.
        owner: The principal whose requests may use it; `None` if callers have no token.
        client: The client that has shaken hands.
        is_resumable: True if the streams of its requests begin with an event to come back with.
        is_over: True if it has ended.
        is_used: True if it has had a request since its handshake, or a stream.
        account: The caller whose budget its handshake counts in.
        posts: Its requests that are being answered.
        streams: The streams that are not answered, by their names.
        log: The messages that were sent to it.
        questions: The requests to its client that are not answered.
        listening: The stream that belongs to no request, which the client opens with a GET.
        connection: The messages to the client on that stream.
        timer: The timer that ends it if it is idle.
        note_end: Records its duration; `None` without telemetry.
    """

    def __init__(self, client: Client, owner: Mapping[str, Any] | None, log: EventLog, account: Account) -> None:
        """Open one for a client that has shaken hands."""
        self.id = uuid4().hex
        self.owner = owner
        self.account = account
        self.is_used = False
        self.client = client
        self.is_resumable = client.revision.has("resumable_streams")
        self.is_over = False
        self.posts: dict[str | int, Post] = {}
        self.streams: dict[str, EventStream] = {}
        self.log = log
        self.questions = Questions()
        self.listening = self.streams[LISTENING] = EventStream(log, LISTENING, has_cursor=self.is_resumable)
        self.connection = MessageSender(self.listening.send, self.questions)
        self.timer: asyncio.TimerHandle | None = None
        self.note_end: Callable[[], None] | None = None
        self._telling: ChangeNotifier | None = None
        self._is_ready = asyncio.Event()
        self._under_way = 0
        self._last = 0.0
        self._opened = 0

    @contextmanager
    def keep_in_use(self) -> Generator[None, None, None]:
        """Keep the session from ending on its own during the block."""
        self._under_way += 1
        try:
            yield
        finally:
            self._under_way -= 1
            self._last = asyncio.get_running_loop().time()

    def find_idle_since(self) -> float:
        """Return the end of its last request, by the event loop's clock; infinite while one is in progress."""
        return math.inf if self._under_way else self._last

    def open_stream(self) -> AnswerStream:
        """Return the stream of one request."""
        self._opened += 1
        name = str(self._opened)
        stream = AnswerStream(
            self.log,
            name,
            session=self.id,
            has_cursor=self.is_resumable,
            ended=lambda: self.streams.pop(name, None),
        )
        self.streams[name] = stream
        return stream

    def begin(self, changes: ChangeLog) -> None:
        """Note that the client is ready: from now on it may be notified of changes, also of those since its
        handshake.
        """
        if self._telling is None:
            wants = self.client.wants or ClientSubscriptions()
            self._telling = ChangeNotifier.join_handshake(wants, changes, self.connection)
            self._is_ready.set()
            self.questions.begin()

    def on_change(self, change: Change) -> None:
        """Process a change; the client is notified while it listens."""
        if self._telling is not None:
            self._telling.on_change(change)

    async def announce(self) -> None:
        """Tell the client of changes, on the stream that it listens to, until this is cancelled."""
        await self._is_ready.wait()
        if self._telling is not None:
            await self._telling.run()

    def close(self) -> None:
        """End its requests and its stream."""
        self.is_over = True
        if self.timer is not None:
            self.timer.cancel()  # it would keep the session in memory until it goes off
        if self.note_end is not None:
            self.note_end()
        for post in [*self.posts.values()]:
            post.cancel()
        self.listening.end()
        self.questions.close()


class Sessions:
    """The sessions of one server."""

    def __init__(self, most: int, budget: Budget, idle: float) -> None:
        """Take the limits of sessions.

        Args:
            most: The maximum number of open sessions.
            budget: The limits on the bytes of their handshakes, of one caller and in all.
            idle: Seconds after which a session without a request under way ends.

        Raises:
            ValueError: A number is not positive.
        """
        if not (math.isfinite(idle) and idle > 0):
            raise ValueError("session_idle_timeout must be a positive, finite number of seconds")
        if most <= 0:
            raise ValueError("max_sessions must be a positive number of sessions")
        self._most = most
        self._handshakes = Accounts(budget)
        self._idle = idle
        self._open: dict[str, Session] = {}

    def has_place(self) -> bool:
        """Return whether one more may be opened, after the end of a session that was never used if necessary."""
        return len(self._open) < self._most or self._end_unused(None)

    def has_room(self, client: Client, account: Account) -> bool:
        """Return whether the budget of a caller allows one more session with its handshake.

        Sessions that were never used end until it does, the oldest first: the caller's sessions if its own budget is
            used up, otherwise any.
        """
        while limit := self._handshakes.find_limit(account, _size(client)):
            if not self._end_unused(make_key(account) if limit == "caller" else None):
                return False
        return True

    def _end_unused(self, key: str | None) -> bool:
        """End the oldest session that was never used, of one caller if there is a key; return whether there was one."""
        for session in self._open.values():
            if not session.is_used and key in (None, make_key(session.account)):
                self.end(session)
                return True
        return False

    def open(self, client: Client, owner: Mapping[str, Any] | None, log: EventLog, account: Account) -> Session:
        """Open one, for a client that shakes hands."""
        session = Session(client, owner, log, account)
        self._open[session.id] = session
        self._handshakes.add(account, _size(client))
        self._look(session, self._idle)
        return session

    def find(self, name: str | None, owner: Mapping[str, Any] | None) -> Session | None:
        """Return the session with an id, if it is the caller's."""
        session = None if name is None else self._open.get(name)
        return session if session is not None and session.owner == owner else None

    def end(self, session: Session) -> None:
        """End one."""
        if self._open.pop(session.id, None) is not None:
            self._handshakes.remove(session.account, _size(session.client))
            session.close()

    def end_streams(self) -> None:
        """Close the listening streams, since the server is going to end."""
        for session in self._open.values():
            session.listening.end()

    def end_all(self) -> None:
        """End all, since the server ends."""
        for session in [*self._open.values()]:
            self.end(session)

    async def publish(self, change: Change) -> None:
        """Notify all interested clients of a change."""
        for session in self._open.values():
            session.on_change(change)

    def _look(self, session: Session, seconds: float) -> None:
        session.timer = asyncio.get_running_loop().call_later(seconds, self._end_idle, session)

    def _end_idle(self, session: Session) -> None:
        # Infinite while a request is in progress; the session is then looked at again after the idle time.
        left = min(session.find_idle_since() + self._idle - asyncio.get_running_loop().time(), self._idle)
        if left > 0:
            self._look(session, left)
        else:
            self.end(session)


def _size(client: Client) -> int:
    """Return the bytes that a session costs."""
    return count_bytes("", client.opening or b"")
