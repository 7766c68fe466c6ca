"""Announces new events to processes whose clients wait for another process's session."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Generator

    from .....state.store import Store
    from .shared_replay import SharedReplay

MAX_WAIT: Final = 20.0
"""The maximum time that a client waits for a response from another process before it must reconnect, in seconds."""

POLL_INTERVAL: Final = 5.0
"""Seconds between two lookups without a notification from another process."""

_ASKED: Final = "events-asked"
_KEPT: Final = "events-kept"


class AwaitedSessions:
    """The sessions whose clients are waiting in another process; only their messages are announced.

    A process that starts to wait asks all processes, and the session's process announces messages from then on. A lost
    notification only delays a response, because the waiting process polls and asks again.
    """

    def __init__(self, store: Store) -> None:
        """Listen for requests and announcements in the store."""
        self.store = store
        self._here: WeakValueDictionary[str, SharedReplay] = WeakValueDictionary()
        self._until: dict[str, float] = {}
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        store.listen(_ASKED, self._on_request)
        store.listen(_KEPT, self._on_event)

    def add(self, session: str, replay: SharedReplay) -> None:
        """Add one of this process's sessions."""
        self._here[session] = replay

    async def announce(self, session: str) -> None:
        """Announce a session's new message if a process is waiting for it. Raises StateLost."""
        if (until := self._until.get(session)) is None:
            return
        if until > asyncio.get_running_loop().time():
            await self.store.publish(_KEPT, session.encode())
        else:
            del self._until[session]

    async def ask(self, session: str) -> None:
        """Ask a session's process to announce new messages. Raises StateLost."""
        await self.store.publish(_ASKED, session.encode())

    @contextmanager
    def watch(self, session: str) -> Generator[asyncio.Event, None, None]:
        """Yield an event that is set when a session may have a new message; the caller clears it."""
        woken = asyncio.Event()
        self._waiting[session].add(woken)
        try:
            yield woken
        finally:
            self._waiting[session].discard(woken)
            if not self._waiting[session]:
                del self._waiting[session]

    async def _on_request(self, data: bytes | None) -> None:
        session = "" if data is None else data.decode()
        if session in self._here:
            now = asyncio.get_running_loop().time()
            self._until = {name: until for name, until in self._until.items() if until > now}
            self._until[session] = now + MAX_WAIT + POLL_INTERVAL
            await self.announce(session)

    async def _on_event(self, data: bytes | None) -> None:
        sessions = [*self._waiting] if data is None else [data.decode()]
        for woken in [woken for session in sessions for woken in self._waiting.get(session, ())]:
            woken.set()
