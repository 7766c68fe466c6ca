"""The server's lists: their entries, on and off, and the pages that clients read.

A list varies by the caller's permissions only, never by the connection, for example (MCP 2026-07-28,
server/utilities/caching).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from ...mcp.vocabulary import SECTIONS
from ...values.units import parse_duration
from ..protocol.client_subscriptions import Change, Kind

if TYPE_CHECKING:
    from ...mcp.revisions import Revision


class VisibilityStore(Protocol):
    """Switches and changes for all clients of a server, in every process."""

    async def publish(self, change: Change) -> None:
        """Tell clients of a change."""
        ...

    async def switch(self, kind: Kind, key: str, *, on: bool) -> bool:
        """Switch an entry on or off; return whether that changed its state."""
        ...


Shows: TypeAlias = Callable[[str], bool]
"""Tells whether a caller sees the entry with a key."""

_KINDS: Final[Mapping[str, Kind]] = {section.name: section.capability for section in SECTIONS}


class StaleCursorError(Exception):
    """A cursor that a list did not give, or gave before it changed."""


@dataclass(slots=True)
class PrimitiveList:
    """One list.

    Attributes:
        name: Its name in results, such as `resourceTemplates`.
        kind: The kind that is announced as changed when it changes.
        version: The number of its changes.
    """

    name: str
    kind: Kind
    _entries: Mapping[str, dict[str, Any]]
    _off: frozenset[str] = frozenset()
    version: int = 0

    @property
    def keys(self) -> list[str]:
        """The keys of the entries that are on, in order."""
        return [key for key in self._entries if key not in self._off]

    def __contains__(self, key: str) -> bool:
        """Return whether there is an entry with this key, and it is on."""
        return key in self._entries and key not in self._off

    def __getitem__(self, key: str) -> dict[str, Any]:
        """Return the definition of an entry."""
        return self._entries[key]

    def has(self, key: str) -> bool:
        """Return whether there is an entry with this key, on or off."""
        return key in self._entries

    def set_hidden(self, keys: Collection[str]) -> None:
        """Switch off the entries with these keys, and no others."""
        off = frozenset(keys) & self._entries.keys()
        if off != self._off:
            self._off = off
            self.version += 1

    def make_page(
        self, cursor: str | None, size: int | None, shows: Shows | None = None
    ) -> tuple[list[dict[str, Any]], str | None]:
        """Return one page, and the cursor of the next if there is one (MCP 2025-11-25, server/utilities/pagination).

        A cursor holds the position of the next page and a digest of the list, so that a cursor of another list, or of
        this one before it changed, is detected. `shows` selects the keys that the caller sees; by default all.

        Raises:
            StaleCursorError: This list gave no such cursor.
        """
        keys = self.keys if shows is None else [key for key in self.keys if shows(key)]
        digest = hashlib.sha256(json.dumps([self.name, keys]).encode()).hexdigest()[:16] if size or cursor else ""
        start = 0 if cursor is None else _position(cursor, digest, len(keys))
        end = len(keys) if size is None else start + size
        following = _cursor(digest, end) if end < len(keys) else None
        return [self._entries[key] for key in keys[start:end]], following


def _cursor(digest: str, position: int) -> str:
    return base64.urlsafe_b64encode(f"{digest}{position}".encode()).decode()


def _position(cursor: str, digest: str, length: int) -> int:
    try:
        text = base64.urlsafe_b64decode(cursor.encode("ascii")).decode("ascii")
    except ValueError:
        text = ""
    position = text.removeprefix(digest)
    is_number = position.isdecimal() and len(position) <= len(str(length))
    is_ours = text.startswith(digest) and is_number and 0 < int(position) < length
    # The decoder accepts several spellings of one text; only the original is valid.
    if not is_ours or _cursor(digest, int(position)) != cursor:
        raise StaleCursorError(cursor)
    return int(position)


class Lists:
    """All lists of one server, with the manifest's settings of pages and caching."""

    def __init__(
        self,
        listings: Mapping[str, Mapping[str, dict[str, Any]]],
        manifest: Mapping[str, Any],
        switchboard: Callable[[Lists], VisibilityStore],
    ) -> None:
        """Take the definitions of each list by their keys, and the factory of the switchboard."""
        self.by_name: dict[str, PrimitiveList] = {
            name: PrimitiveList(name, _KINDS[name], entries) for name, entries in listings.items()
        }
        self._size: int | None = manifest.get("pageSize")
        cache: Mapping[str, Any] = manifest.get("cache") or {}
        self.hints: dict[str, Any] = {
            "ttlMs": round(1000 * parse_duration(cache["ttl"])) if cache.get("ttl") else 0,
            "cacheScope": cache.get("scope", "private"),
        }
        self.switchboard = switchboard(self)
        self.tools = Visibility("tools", self)
        self.prompts = Visibility("prompts", self)
        self.resources = ResourceVisibility("resources", self)

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of its lists."""
        return [*dict.fromkeys(listing.kind for listing in self.by_name.values())]

    def answer(self, name: str, cursor: str | None, revision: Revision, shows: Shows | None = None) -> dict[str, Any]:
        """Return the result of a list method: one page, with hints for caches from 2026-07-28 on."""
        result = self.make_page(self.by_name[name], cursor, shows)
        return {**result, **self.hints} if revision.has("cache_hints") else result

    def make_page(self, listing: PrimitiveList, cursor: str | None, shows: Shows | None = None) -> dict[str, Any]:
        """Return one page, of the manifest's page size, of a list, which need not be one of these.

        Raises:
            StaleCursorError: That list gave no such cursor.
        """
        entries, following = listing.make_page(cursor, self._size, shows)
        result: dict[str, Any] = {listing.name: entries}
        if following is not None:
            result["nextCursor"] = following
        return result


class Visibility:
    """The entries of one kind, as a handler or an embedder switches them on and off, for all clients."""

    def __init__(self, kind: Kind, lists: Lists) -> None:
        """Take the lists that hold such entries."""
        self._kind: Kind = kind
        self._lists = lists

    async def enable(self, key: str) -> None:
        """List an entry again, by its name (a resource by its URI), and tell clients.

        Raises:
            KeyError: There is no such entry.
        """
        await self._switch(key, on=True)

    async def disable(self, key: str) -> None:
        """Take an entry off the list, as if it were not there, and tell clients.

        Raises:
            KeyError: There is no such entry.
        """
        await self._switch(key, on=False)

    async def changed(self) -> None:
        """Tell clients that the list changed."""
        await self._lists.switchboard.publish(Change(self._kind))

    async def _switch(self, key: str, *, on: bool) -> None:
        if not any(listing.kind == self._kind and listing.has(key) for listing in self._lists.by_name.values()):
            raise KeyError(f"there is no {key!r} among the {self._kind}")
        if await self._lists.switchboard.switch(self._kind, key, on=on):
            await self.changed()


class ResourceVisibility(Visibility):
    """The switches of resources and resource templates."""

    async def updated(self, uri: str) -> None:
        """Tell clients that subscribed to a resource that it changed (MCP 2025-11-25, server/resources, Updates)."""
        await self._lists.switchboard.publish(Change("resources", uri))
