"""Results that are too large for an answer, kept for a while, to be read as resources.

Results are bounded in number, bytes and time, for each caller and for all, and are lost when the process ends.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import Final

from ..core.principal import find_access_token, make_from_token

SCHEME: Final = "kept"
MOST: Final = 100
MOST_BYTES: Final = 64 * 1024 * 1024
SECONDS: Final = 600.0

_SHARE: Final = 4
"""The share of a principal in the kept results and bytes is one in so many."""

_PREFIX: Final = f"{SCHEME}://result/"

Principal = tuple[str, str | None, str | None] | None


@dataclass(frozen=True, slots=True)
class Entry:
    """A kept result: its owner, its end, its MIME type and its bytes."""

    principal: Principal
    until: float
    mime_type: str
    data: bytes = field(repr=False)


class Store:
    """The results that one process keeps."""

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES, seconds: float = SECONDS) -> None:
        """Take the maximum number of results and bytes, which principals share, and the time to store them."""
        self._most, self._most_bytes, self._seconds = most, most_bytes, seconds
        self._entries: dict[str, Entry] = {}

    @property
    def largest(self) -> int:
        """The maximum size of a stored result, in bytes."""
        return self._most_bytes // _SHARE

    def keep(self, data: bytes, mime_type: str) -> str | None:
        """Keep a result for the current caller, and return its URI; `None` if it is too large.

        The oldest results of the same caller go first; if all callers together have too much, the oldest of the caller
        with the most.
        """
        caller = identify_principal()
        if len(data) > self.largest:
            return None
        self._forget()
        while self._is_over(self._of(caller), len(data), _SHARE):
            del self._entries[self._of(caller)[0]]
        while self._is_over([*self._entries], len(data), 1):
            most = max(
                {entry.principal for entry in self._entries.values()}, key=lambda owner: self._size(self._of(owner))
            )
            del self._entries[self._of(most)[0]]
        uri = f"{_PREFIX}{secrets.token_urlsafe(24)}"
        self._entries[uri] = Entry(caller, time.monotonic() + self._seconds, mime_type, data)
        return uri

    def read(self, uri: str) -> Entry | None:
        """Return the entry under a URI if it belongs to the current caller; otherwise `None`."""
        if not uri.startswith(_PREFIX):
            return None
        self._forget()
        entry = self._entries.get(uri)
        return entry if entry is not None and entry.principal == identify_principal() else None

    def _of(self, who: Principal) -> list[str]:
        return [uri for uri, entry in self._entries.items() if entry.principal == who]

    def _size(self, uris: list[str]) -> int:
        return sum(len(self._entries[uri].data) for uri in uris)

    def _is_over(self, uris: list[str], more: int, share: int) -> bool:
        """Return whether so many more bytes are too many next to these results, or these are too many already."""
        if not uris:
            return False
        return len(uris) >= self._most // share or self._size(uris) + more > self._most_bytes // share

    def _forget(self) -> None:
        now = time.monotonic()
        self._entries = {uri: entry for uri, entry in self._entries.items() if entry.until > now}


def identify_principal() -> Principal:
    """Return the client, issuer and subject of the caller's access token; `None` without authentication."""
    token = find_access_token()
    return None if token is None else (token.client_id, make_from_token(token).issuer, token.subject)


STORE: Final = Store()
"""The results of this process; the servers in it share this, since no client can guess another's URI."""
