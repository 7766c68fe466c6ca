"""Stores results that are too large for a response, so that clients can read them as resources.

The number, total size and lifetime of stored results are limited, in total and per caller. They are lost when the
process exits.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import Final

from ..core.request import find_request

SCHEME: Final = "kept"
MOST: Final = 100
MOST_BYTES: Final = 64 * 1024 * 1024
SECONDS: Final = 600.0

_SHARE: Final = 4
"""The limits per principal are the total limits divided by this number."""

_PREFIX: Final = f"{SCHEME}://result/"


@dataclass(frozen=True, slots=True)
class Entry:
    """A stored result; `until` is the expiry on the monotonic clock."""

    principal: str | None
    until: float
    mime_type: str
    data: bytes = field(repr=False)


class Store:
    """The large results that one process stores."""

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES, seconds: float = SECONDS) -> None:
        """Create an empty store with a maximum number and size of results, and their lifetime in seconds."""
        self._most, self._most_bytes, self._seconds = most, most_bytes, seconds
        self._entries: dict[str, Entry] = {}

    @property
    def largest(self) -> int:
        """The maximum size of one result, in bytes."""
        return self._most_bytes // _SHARE

    def keep(self, data: bytes, mime_type: str) -> str | None:
        """Store a result for the current caller and return its URI; `None` if the result is too large.

        At the caller's limit, the caller's oldest results are dropped. At the total limit, the oldest results of the
        caller that uses the most bytes are dropped.
        """
        caller = identify_principal()
        if len(data) > self.largest:
            return None
        self._drop_expired()
        while self._exceeds(self._list_uris(caller), len(data), _SHARE):
            del self._entries[self._list_uris(caller)[0]]
        while self._exceeds([*self._entries], len(data), 1):
            most = max(
                {entry.principal for entry in self._entries.values()},
                key=lambda owner: self._size(self._list_uris(owner)),
            )
            del self._entries[self._list_uris(most)[0]]
        uri = f"{_PREFIX}{secrets.token_urlsafe(24)}"
        self._entries[uri] = Entry(caller, time.monotonic() + self._seconds, mime_type, data)
        return uri

    def read(self, uri: str) -> Entry | None:
        """Return the result at a URI if it belongs to the current caller, otherwise `None`."""
        if not uri.startswith(_PREFIX):
            return None
        self._drop_expired()
        entry = self._entries.get(uri)
        return entry if entry is not None and entry.principal == identify_principal() else None

    def _list_uris(self, who: str | None) -> list[str]:
        return [uri for uri, entry in self._entries.items() if entry.principal == who]

    def _size(self, uris: list[str]) -> int:
        return sum(len(self._entries[uri].data) for uri in uris)

    def _exceeds(self, uris: list[str], more: int, share: int) -> bool:
        if not uris:
            return False
        return len(uris) >= self._most // share or self._size(uris) + more > self._most_bytes // share

    def _drop_expired(self) -> None:
        now = time.monotonic()
        self._entries = {uri: entry for uri, entry in self._entries.items() if entry.until > now}


def identify_principal() -> str | None:
    """Return the key of the caller and its client; `None` outside a request. A task's run has the task's caller."""
    request = find_request()
    return None if request is None else request.principal.client_key


STORE: Final = Store()
"""This process's store. Several servers can share it, because its URIs cannot be guessed."""
