"""Clients that wait at one process for messages that another one still has to send."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final
from weakref import WeakValueDictionary

if TYPE_CHECKING:
    from collections.abc import Generator

    from .....state.store import Store
    from .shared import SharedReplay

PATIENCE: Final = 20.0
"""Seconds that a client waits for an answer that another process may still give; then it comes again."""

LOOK: Final = 5.0
"""Seconds between two checks for it without a notification from another process."""

_ASKED: Final = "events-asked"
_KEPT: Final = "events-kept"


class AwaitedSessions:
    """The sessions that clients wait for at another process: only messages of these are published.

    A process that begins to wait asks all processes, and the owner of the session announces messages from then on.
    A lost notification costs no more than time: a process that waits looks on its own now and then, and asks again.
    """

    def __init__(self, store: Store) -> None:
        """Take the store of messages."""
        self.store = store
        self._here: WeakValueDictionary[str, SharedReplay] = WeakValueDictionary()
        self._until: dict[str, float] = {}
        self._waiting: defaultdict[str, set[asyncio.Event]] = defaultdict(set)
        store.listen(_ASKED, self._asked)
        store.listen(_KEPT, self._heard)

    def add(self, session: str, replay: SharedReplay) -> None:
        """Note a session of this process."""
        self._here[session] = replay

    async def announce(self, session: str) -> None:
        """Publish that a session has another message, if a process waits for it. Raises StateLost."""
        if (until := self._until.get(session)) is None:
            return
        if until > asyncio.get_running_loop().time():
            await self.store.publish(_KEPT, session.encode())
        else:
            del self._until[session]

    async def ask(self, session: str) -> None:
        """Ask the process of a session to announce each further message. Raises StateLost."""
        await self.store.publish(_ASKED, session.encode())

    @contextmanager
    def watch(self, session: str) -> Generator[asyncio.Event, None, None]:
        """Yield an event that is set when a session may have another message; the caller clears it."""
        woken = asyncio.Event()
        self._waiting[session].add(woken)
        try:
            yield woken
        finally:
            self._waiting[session].discard(woken)
            if not self._waiting[session]:
                del self._waiting[session]

    async def _asked(self, data: bytes | None) -> None:
        session = "" if data is None else data.decode()
        if session in self._here:
            now = asyncio.get_running_loop().time()
            self._until = {name: until for name, until in self._until.items() if until > now}
            self._until[session] = now + PATIENCE + LOOK
            await self.announce(session)

    async def _heard(self, data: bytes | None) -> None:
        sessions = [*self._waiting] if data is None else [data.decode()]
        for woken in [woken for session in sessions for woken in self._waiting.get(session, ())]:
            woken.set()
