"""A server's lists of primitives, with hidden entries and pagination.

A list's contents depend only on the caller's permissions, and not, for example, on the connection (MCP 2026-07-28,
server/utilities/caching).
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Final, Protocol, TypeAlias

from ...mcp.vocabulary import SECTIONS
from ...values.units import parse_duration
from ..protocol.client_subscriptions import Change, Kind

if TYPE_CHECKING:
    from ...mcp.revisions import Revision


class VisibilityStore(Protocol):
    """Stores which entries are hidden, for the clients of all processes, and notifies those clients of changes."""

    async def publish(self, change: Change) -> None:
        """Notify clients of a change."""
        ...

    async def switch(self, kind: Kind, key: str, *, on: bool) -> bool:
        """Show or hide an entry; return whether its visibility changed."""
        ...


Shows: TypeAlias = Callable[[str], bool]
"""Returns whether the caller can see the entry with this key."""

_KINDS: Final[Mapping[str, Kind]] = {section.name: section.capability for section in SECTIONS}


class StaleCursorError(Exception):
    """The cursor is not from the current version of the list."""


@dataclass(slots=True)
class PrimitiveList:
    """One list, such as the tools.

    Attributes:
        name: The list's key in results, such as `resourceTemplates`.
        kind: The list's kind in change notifications, such as `resources`.
        version: The number of changes so far.
        visible: The visible entries in order, by name or URI.
    """

    name: str
    kind: Kind
    _entries: Mapping[str, dict[str, Any]]
    version: int = 0
    visible: Mapping[str, dict[str, Any]] = field(init=False)

    def __post_init__(self) -> None:
        self.visible = self._entries

    def __contains__(self, key: str) -> bool:
        """Return whether an entry exists and is visible."""
        return key in self.visible

    def __getitem__(self, key: str) -> dict[str, Any]:
        """Return an entry's definition, even if the entry is hidden."""
        return self._entries[key]

    def has(self, key: str) -> bool:
        """Return whether an entry exists, visible or hidden."""
        return key in self._entries

    def set_hidden(self, keys: Collection[str]) -> None:
        """Hide exactly these entries."""
        visible = {key: entry for key, entry in self._entries.items() if key not in keys}
        if visible.keys() != self.visible.keys():
            self.visible = visible
            self.version += 1

    def make_page(
        self, cursor: str | None, size: int | None, shows: Shows | None = None
    ) -> tuple[list[dict[str, Any]], str | None]:
        """Return one page, and the next page's cursor, if any (MCP 2025-11-25, server/utilities/pagination).

        A cursor contains the next page's position and a digest of the list, which detects cursors from other lists and
        from earlier versions. `shows` selects the entries that the caller can see; by default all visible entries.

        Raises:
            StaleCursorError: The cursor is not from this version of the list.
        """
        keys = [key for key in self.visible if shows is None or shows(key)]
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
    is_valid = text.startswith(digest) and is_number and 0 < int(position) < length
    # The decoder accepts several encodings of a string; only the canonical one is valid.
    if not is_valid or _cursor(digest, int(position)) != cursor:
        raise StaleCursorError(cursor)
    return int(position)


class Lists:
    """All lists of one server, with the manifest's page size and cache settings."""

    def __init__(
        self,
        listings: Mapping[str, Mapping[str, dict[str, Any]]],
        manifest: Mapping[str, Any],
        visibility_store: Callable[[Lists], VisibilityStore],
    ) -> None:
        """Create the lists from their entries' definitions by key.

        `visibility_store` creates the store of hidden entries.
        """
        self.by_name: dict[str, PrimitiveList] = {
            name: PrimitiveList(name, _KINDS[name], entries) for name, entries in listings.items()
        }
        self._size: int | None = manifest.get("pageSize")
        cache: Mapping[str, Any] = manifest.get("cache") or {}
        self.hints: dict[str, Any] = {
            "ttlMs": round(1000 * parse_duration(cache["ttl"])) if cache.get("ttl") else 0,
            "cacheScope": cache.get("scope", "private"),
        }
        self.visibility_store = visibility_store(self)
        self.tools = Visibility("tools", self)
        self.prompts = Visibility("prompts", self)
        self.resources = ResourceVisibility("resources", self)

    @property
    def kinds(self) -> list[Kind]:
        """The kinds of the server's lists, without duplicates."""
        return [*dict.fromkeys(listing.kind for listing in self.by_name.values())]

    def answer(self, name: str, cursor: str | None, revision: Revision, shows: Shows | None = None) -> dict[str, Any]:
        """Return a list method's result: one page, with cache hints in MCP 2026-07-28 and later."""
        result = self.make_page(self.by_name[name], cursor, shows)
        return {**result, **self.hints} if revision.has("cache_hints") else result

    def make_page(self, listing: PrimitiveList, cursor: str | None, shows: Shows | None = None) -> dict[str, Any]:
        """Return one page of a list, with the manifest's page size.

        Raises:
            StaleCursorError: The cursor is not from the current version of the list.
        """
        entries, following = listing.make_page(cursor, self._size, shows)
        result: dict[str, Any] = {listing.name: entries}
        if following is not None:
            result["nextCursor"] = following
        return result


class Visibility:
    """Shows and hides primitives of one kind for all clients."""

    def __init__(self, kind: Kind, lists: Lists) -> None:
        self._kind: Kind = kind
        self._lists = lists

    async def enable(self, key: str) -> None:
        """Show the entry with a name or URI, and notify clients.

        Raises:
            KeyError: The entry does not exist.
        """
        await self._switch(key, on=True)

    async def disable(self, key: str) -> None:
        """Hide the entry with a name or URI as if it did not exist, and notify clients.

        Raises:
            KeyError: The entry does not exist.
        """
        await self._switch(key, on=False)

    async def changed(self) -> None:
        """Notify clients that the list has changed, for example because a definition changed elsewhere."""
        await self._lists.visibility_store.publish(Change(self._kind))

    async def _switch(self, key: str, *, on: bool) -> None:
        if not any(listing.kind == self._kind and listing.has(key) for listing in self._lists.by_name.values()):
            raise KeyError(f"no {key!r} in {self._kind}")
        if await self._lists.visibility_store.switch(self._kind, key, on=on):
            await self.changed()


class ResourceVisibility(Visibility):
    """Shows and hides resources and resource templates, and reports resource updates."""

    async def updated(self, uri: str) -> None:
        """Notify a resource's subscribers that it was updated (MCP 2025-11-25, server/resources, "Subscriptions")."""
        await self._lists.visibility_store.publish(Change("resources", uri))
