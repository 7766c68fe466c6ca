"""HTTP sessions (MCP 2025-11-25 and earlier)."""

from __future__ import annotations

import asyncio
import math
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from ....state.budget import count_bytes
from ...protocol.changes import ChangeNotifier
from ...protocol.client_subscriptions import ClientSubscriptions
from ...protocol.sender import MessageSender, Questions
from .events import AnswerStream, EventStream
from .posts.accounts import Accounts, make_key
from .resumption.log import LISTENING

if TYPE_CHECKING:
    from collections.abc import Callable, Generator, Mapping

    from ....state.budget import Budget
    from ...protocol.client_subscriptions import Change, ChangeLog
    from ..lifecycle import Client
    from .posts.accounts import Account
    from .posts.post import Post
    from .resumption.log import EventLog


class Session:
    """A client's session over HTTP.

    Attributes:
        id: The session ID.
        owner: The claims that identify the principal to which the session belongs; `None` if tokens are not used.
        client: The client that sent the handshake.
        is_resumable: True if the revision supports resumption from the start of a stream.
        has_ended: True after the session was closed.
        is_used: True after the first request or stream that follows the handshake.
        account: The caller whose budget counts the handshake.
        posts: The client's pending requests, by JSON-RPC ID.
        streams: The open streams, by name.
        log: The event log.
        questions: The server's pending requests to the client.
        listening: The stream for messages that belong to no request; the client connects to it with a GET.
        connection: Sends messages on the listening stream.
        timer: The idle timer.
        record_end: Records the session's duration; `None` if telemetry is not used.
    """

    def __init__(self, client: Client, owner: Mapping[str, Any] | None, log: EventLog, account: Account) -> None:
        """Create the session of a client that sent a handshake."""
        self.id = uuid4().hex
        self.owner = owner
        self.account = account
        self.is_used = False
        self.client = client
        self.is_resumable = client.revision.has("resumable_streams")
        self.has_ended = False
        self.posts: dict[str | int, Post] = {}
        self.streams: dict[str, EventStream] = {}
        self.log = log
        self.questions = Questions()
        self.listening = self.streams[LISTENING] = EventStream(log, LISTENING, has_cursor=self.is_resumable)
        self.connection = MessageSender(self.listening.send, self.questions)
        self.timer: asyncio.TimerHandle | None = None
        self.record_end: Callable[[], None] | None = None
        self._notifier: ChangeNotifier | None = None
        self._is_ready = asyncio.Event()
        self._in_progress = 0
        self._last = 0.0
        self._opened = 0

    @contextmanager
    def keep_in_use(self) -> Generator[None, None, None]:
        """Prevent the session from timing out during the block."""
        self._in_progress += 1
        try:
            yield
        finally:
            self._in_progress -= 1
            self._last = asyncio.get_running_loop().time()

    def idle_since(self) -> float:
        """Return the event loop's time when the last request finished, or infinity while a request is pending."""
        return math.inf if self._in_progress else self._last

    def open_stream(self) -> AnswerStream:
        """Return a new stream for one request."""
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
        """Process `notifications/initialized`. The client is then notified of all changes since its handshake."""
        if self._notifier is None:
            subscriptions = self.client.subscriptions or ClientSubscriptions()
            self._notifier = ChangeNotifier.join_handshake(subscriptions, changes, self.connection)
            self._is_ready.set()
            self.questions.begin()

    def on_change(self, change: Change) -> None:
        """Queue a notification of a change, unless the client has not sent `notifications/initialized`."""
        if self._notifier is not None:
            self._notifier.on_change(change)

    async def announce(self) -> None:
        """Send queued change notifications on the listening stream until cancelled."""
        await self._is_ready.wait()
        if self._notifier is not None:
            await self._notifier.run()

    def close(self) -> None:
        """Close the session, cancel its requests and end its listening stream."""
        self.has_ended = True
        if self.timer is not None:
            self.timer.cancel()  # the timer refers to the session and would keep it in memory
        if self.record_end is not None:
            self.record_end()
        for post in [*self.posts.values()]:
            post.cancel()
        self.listening.end()
        self.questions.close()


class Sessions:
    """A server's open sessions."""

    def __init__(self, most: int, budget: Budget, idle: float) -> None:
        """Create an empty table of sessions.

        Args:
            most: The maximum number of open sessions.
            budget: The limits on the bytes of retained handshakes, per caller and in total.
            idle: The idle timeout of sessions in seconds.

        Raises:
            ValueError: `most` or `idle` is not positive, or `idle` is not finite.
        """
        if not (math.isfinite(idle) and idle > 0):
            raise ValueError("session_idle_timeout must be a positive, finite number of seconds")
        if most <= 0:
            raise ValueError("max_sessions must be a positive number of sessions")
        self._most = most
        self._handshakes = Accounts(budget)
        self._idle = idle
        self._open: dict[str, Session] = {}

    def has_capacity(self) -> bool:
        """Return whether another session can open. If necessary, close an unused session to make room."""
        return len(self._open) < self._most or self._end_unused(None)

    def has_room(self, client: Client, account: Account) -> bool:
        """Return whether the budget allows a client's handshake, which is counted for a caller.

        If necessary, close unused sessions, oldest first: only the caller's if the limit per caller is reached,
        otherwise anyone's.
        """
        while limit := self._handshakes.find_limit(account, _size(client)):
            if not self._end_unused(make_key(account) if limit == "caller" else None):
                return False
        return True

    def _end_unused(self, key: str | None) -> bool:
        """Close the oldest unused session, of a single caller if `key` is set. Return whether a session was closed."""
        for session in self._open.values():
            if not session.is_used and key in (None, make_key(session.account)):
                self.end(session)
                return True
        return False

    def open(self, client: Client, owner: Mapping[str, Any] | None, log: EventLog, account: Account) -> Session:
        """Open a session for a client; first check `has_capacity` and `has_room`."""
        session = Session(client, owner, log, account)
        self._open[session.id] = session
        self._handshakes.add(account, _size(client))
        self._check_later(session, self._idle)
        return session

    def find(self, name: str | None, owner: Mapping[str, Any] | None) -> Session | None:
        """Return the session with an ID, or `None` if the caller does not own one with this ID."""
        session = None if name is None else self._open.get(name)
        return session if session is not None and session.owner == owner else None

    def end(self, session: Session) -> None:
        """Close a session, if it is open, and release its handshake's bytes."""
        if self._open.pop(session.id, None) is not None:
            self._handshakes.remove(session.account, _size(session.client))
            session.close()

    def end_streams(self) -> None:
        """Close the listening streams, because the server is stopping."""
        for session in self._open.values():
            session.listening.end()

    def end_all(self) -> None:
        """Close all sessions."""
        for session in [*self._open.values()]:
            self.end(session)

    async def publish(self, change: Change) -> None:
        """Notify each client that is subscribed to a change."""
        for session in self._open.values():
            session.on_change(change)

    def _check_later(self, session: Session, seconds: float) -> None:
        session.timer = asyncio.get_running_loop().call_later(seconds, self._end_idle, session)

    def _end_idle(self, session: Session) -> None:
        # `idle_since` is infinite while a request is pending; the next check is then one idle timeout later.
        left = min(session.idle_since() + self._idle - asyncio.get_running_loop().time(), self._idle)
        if left > 0:
            self._check_later(session, left)
        else:
            self.end(session)


def _size(client: Client) -> int:
    return count_bytes("", client.handshake or b"")
