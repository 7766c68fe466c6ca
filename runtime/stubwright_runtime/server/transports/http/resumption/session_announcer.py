"""Announces a session's new messages to other processes in which clients are waiting for them."""

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
"""The maximum time in seconds that a client waits for another process's response before it must reconnect."""

POLL_INTERVAL: Final = 5.0
"""Seconds between two lookups in the store while no announcement arrives."""

_ASKED: Final = "events-asked"
_KEPT: Final = "events-kept"


class SessionAnnouncer:
    """Announces new messages, but only of sessions for which clients are waiting in another process.

    A process in which a client waits asks all processes. From then on, the session's process announces new messages. A
    lost announcement only delays a response, because the waiting process polls the store and asks again.
    """

    def __init__(self, store: Store) -> None:
        """Listen to the store for other processes' requests and announcements."""
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
        """Announce that a session has a new message, if a process has asked for it. Raises StateLost."""
        if (until := self._until.get(session)) is None:
            return
        if until > asyncio.get_running_loop().time():
            await self.store.publish(_KEPT, session.encode())
        else:
            del self._until[session]

    async def ask(self, session: str) -> None:
        """Ask the process that owns a session to announce its new messages. Raises StateLost."""
        await self.store.publish(_ASKED, session.encode())

    @contextmanager
    def watch(self, session: str) -> Generator[asyncio.Event, None, None]:
        """Yield an event that is set when a session may have a new message. The caller clears the event."""
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
