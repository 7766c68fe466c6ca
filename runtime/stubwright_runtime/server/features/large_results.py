"""Results that are too large for an answer, kept for a while, to be read as resources.

Takes what a call gave; gives a URI that nobody can guess, under which the same caller can read it. What is kept is
bounded in number, bytes and time, for each caller and for all, and is lost when the process ends.
"""

from __future__ import annotations

import secrets
import time
from dataclasses import dataclass, field
from typing import Final

from ..core.principal import access_token

SCHEME: Final = "kept"
MOST: Final = 100
MOST_BYTES: Final = 64 * 1024 * 1024
SECONDS: Final = 600.0

_SHARE: Final = 4
"""A principal may have one in so many of the results and bytes that are kept."""

_PREFIX: Final = f"{SCHEME}://result/"

Principal = tuple[str, str | None, str | None] | None


@dataclass(frozen=True, slots=True)
class Entry:
    """Something that is kept: whose it is, until when, what it is, and its bytes."""

    principal: Principal
    until: float
    mime_type: str
    data: bytes = field(repr=False)


class Store:
    """What one process keeps."""

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES, seconds: float = SECONDS) -> None:
        """Say how many results, how many bytes in all, and for how long; one principal has a share of both."""
        self._most, self._most_bytes, self._seconds = most, most_bytes, seconds
        self._entries: dict[str, Entry] = {}

    def keep(self, data: bytes, mime_type: str) -> str | None:
        """Return the URI of what is kept from now on, for who asks now; None if it is too large.

        The oldest of the same principal goes first, and where all have too much, the oldest of who has most.
        """
        caller = principal()
        if len(data) > self._most_bytes // _SHARE:
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
        """Return what is kept under a URI, for who asks now."""
        if not uri.startswith(_PREFIX):
            return None
        self._forget()
        entry = self._entries.get(uri)
        return entry if entry is not None and entry.principal == principal() else None

    def _of(self, who: Principal) -> list[str]:
        return [uri for uri, entry in self._entries.items() if entry.principal == who]

    def _size(self, uris: list[str]) -> int:
        return sum(len(self._entries[uri].data) for uri in uris)

    def _is_over(self, uris: list[str], more: int, share: int) -> bool:
        """Tell whether so many more bytes are too many beside these results, or these are too many already."""
        if not uris:
            return False
        return len(uris) >= self._most // share or self._size(uris) + more > self._most_bytes // share

    def _forget(self) -> None:
        now = time.monotonic()
        self._entries = {uri: entry for uri, entry in self._entries.items() if entry.until > now}


def principal() -> Principal:
    """Return who asks: the client, issuer and subject of the access token; None if there is no authentication."""
    token = access_token()
    if token is None:
        return None
    from ...sdk.auth import principal_components

    return principal_components(token)


STORE: Final = Store()
"""What this process keeps; another server in it cannot guess what it did not give."""
