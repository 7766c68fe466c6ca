"""Changes that the client on standard input hears of, up to 2025-11-25; later clients listen by a request of their own.

Takes what the client wants to hear, and changes as they come; tells it from `notifications/initialized` on.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ...core.lists import Change
from ...protocol.changes import Telling

if TYPE_CHECKING:
    from ...protocol.outgoing import Outgoing
    from ...protocol.wants import ChangeLog, Wants


class Notices:
    """The notifications of one connection."""

    def __init__(self, wants: Wants, changes: ChangeLog, outgoing: Outgoing) -> None:
        """Tell of changes from now on, and of those since the handshake: before this nothing may be sent.

        Args:
            wants: What the client wants to hear.
            changes: What changed until now.
            outgoing: The messages to the client.
        """
        telling = Telling(lambda change: change.uri is None or change.uri in wants.uris, outgoing)
        since = changes.count if wants.since is None else wants.since
        for kind, number in changes.last.items():
            if number > since:
                telling.hear(Change(kind))
        self.hear = telling.hear
        self._telling = asyncio.create_task(telling.run())

    def close(self) -> None:
        """Tell nothing more."""
        self._telling.cancel()
