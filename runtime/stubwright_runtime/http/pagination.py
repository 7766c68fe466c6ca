"""Paginates APIs by a cursor in the body, a `Link` header, an offset, or a page number.

Our cursors contain only a position, sent as an encoded argument, so they cannot select another path or host.
"""

from __future__ import annotations

import base64
import hashlib
import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Final
from urllib.parse import parse_qsl, unquote_plus, urljoin, urlsplit

from ..errors import ToolError
from ..values.json import Json, is_list
from .requests import OutgoingRequest
from .responses import Answer, SchemaMismatch, holds_secret
from .selections import get_value
from .styles import encode

CURSOR: Final = "cursor"
"""The argument with the page position."""

_VERSION: Final = 1
_LONGEST: Final = 4096
"""The maximum cursor length in characters."""

_MOST_PAIRS: Final = 50
_FURTHEST: Final = 2**53
_FURTHEST_CURSOR: Final = 2**128
"""The maximum numeric cursor. Cursors can be IDs, which often have 64 bits."""

_LINK: Final = re.compile(r'<([^<>]*)>((?:\s*;\s*[^\s;,="]+(?:\s*=\s*(?:"[^"]*"|[^\s;,"]*))?)*)')
"""A link and its parameters in a `Link` header (RFC 8288, 3)."""

_PARAMETER: Final = re.compile(r';\s*([^\s;,="]+)\s*(?:=\s*(?:"([^"]*)"|([^\s;,"]*)))?')
_LONGEST_HEADER: Final = 16_384


class Page:
    """A tool's pagination settings."""

    def __init__(self, tool: str, http: Mapping[str, Any]) -> None:
        """Read the pagination settings from a tool's `http`."""
        settings: Mapping[str, Any] = http["page"]
        self.by: str = settings["by"]
        self.items: str = settings.get("items", "")
        self.argument: str | None = settings.get("argument")
        self.first: int | None = settings.get("first")
        self.next: str | None = settings.get("next")
        self.more: str | None = settings.get("more")
        self.total: str | None = settings.get("total")
        self.limit: str | None = settings.get("limit")
        self.size: int | None = settings.get("size")
        self.parameters = frozenset((*(http.get("query") or {}), *(settings.get("parameters") or ())))
        self._tag = hashlib.sha256(f"{tool}\0{self.by}".encode()).hexdigest()[:8]

    def begin(self, values: Mapping[str, Any]) -> tuple[dict[str, Any], PageRequest]:
        """Split a call's arguments into those for the API and the requested page.

        Raises:
            ToolError: The cursor does not belong to this tool.
        """
        given = {name: value for name, value in values.items() if name != CURSOR}
        cursor: Json = values.get(CURSOR)
        start = None if cursor is None else self._read(cursor)
        if self.argument is not None and self.by != "link":
            if start is not None:
                given[self.argument] = start
            elif self.first is not None:
                given[self.argument] = self.first
        if self.limit is not None and self.size is not None and given.get(self.limit) is None:
            given[self.limit] = self.size
        limit = _number(given.get(self.limit) if self.limit is not None else self.size)
        return given, PageRequest(self, start, limit or None)

    def write(self, position: Json) -> str:
        """Encode a position as a cursor.

        Raises:
            SchemaMismatch: The API's cursor is too long.
        """
        text = json.dumps([_VERSION, self._tag, position], separators=(",", ":"))
        cursor = base64.urlsafe_b64encode(text.encode()).decode().rstrip("=")
        if len(cursor) > _LONGEST:
            raise SchemaMismatch(f"The API's own cursor is longer than {_LONGEST} characters and cannot be used.")
        return cursor

    def _read(self, cursor: Json) -> Any:
        value: Json = _decode_cursor(cursor) if isinstance(cursor, str) else None
        is_own = isinstance(value, list) and value[:2] == [_VERSION, self._tag] and len(value) == 3
        if not isinstance(value, list) or not is_own or not self.is_position(value[2]):
            raise ToolError("`cursor` did not come from this tool: use a page's `next`, or omit it for the first page.")
        return value[2]

    def is_position(self, value: Json) -> bool:
        """Return whether a value can be a page position."""
        if self.by == "link":
            return is_list(value) and len(value) <= _MOST_PAIRS and all(map(self._is_pair, value))
        if self.by == "cursor" and isinstance(value, str):
            return value != ""
        if self.by == "cursor" and isinstance(value, float):
            return abs(value) < _FURTHEST  # larger floats do not represent integers exactly
        if not isinstance(value, int) or isinstance(value, bool):
            return False
        if self.by == "cursor":
            return abs(value) < _FURTHEST_CURSOR  # signed hashes, such as Cassandra's tokens, can be negative
        return 0 <= value < _FURTHEST

    def _is_pair(self, value: Json) -> bool:
        return (
            is_list(value)
            and len(value) == 2
            and all(isinstance(each, str) for each in value)
            and value[0] in self.parameters
        )


@dataclass(frozen=True, slots=True)
class PageRequest:
    """The page that a call requests.

    Attributes:
        page: The pagination settings.
        start: The page position, or `None` for the first page.
        limit: The maximum number of items on the page, or `None` if unknown.
        secrets: The secrets in the HTTP request.
    """

    page: Page
    start: Any
    limit: int | None
    secrets: Sequence[str] = field(default=(), repr=False)

    @property
    def where(self) -> str:
        """The JSON Pointer to the items in a response."""
        return self.page.items

    def make_request(self, request: OutgoingRequest) -> OutgoingRequest:
        """Apply the query changes from the previous `Link` header to the first page's request."""
        if self.page.by != "link" or not self.start:
            return request
        names = {name for name, _ in self.start}
        url, _, query = request.url.partition("?")
        parameters = [part for part in query.split("&") if part and unquote_plus(part.partition("=")[0]) not in names]
        parameters += [f"{encode(name)}={encode(value)}" for name, value in self.start]
        return replace(request, url=f"{url}?{'&'.join(parameters)}")

    def find_items(self, body: Any) -> Sequence[Any]:
        """Return the page's items from the response body.

        Raises:
            SchemaMismatch: The items are not a list.
        """
        items: Json = get_value(body, self.page.items)
        if items is None:
            return []
        if not isinstance(items, list):
            where = f" at `{self.page.items}`" if self.page.items else ""
            raise SchemaMismatch(f"The API's response has no list of items{where}.")
        return items

    def find_cursor(self, answer: Answer, body: Any) -> str | None:
        """Return the next page's cursor, or `None` if this is the last page.

        Raises:
            SchemaMismatch: The API's link to its next page cannot be followed.
        """
        page = self.page
        if page.more is not None and get_value(body, page.more) is False:
            return None
        if page.by == "link":
            return self._read_link(answer)
        if page.by == "cursor":
            return self._read_cursor(body)
        got = len(self.find_items(body))
        total = None if page.total is None else _number(get_value(body, page.total))
        if got == 0 or (self.limit is not None and got < self.limit and total is None):
            return None
        if page.by == "offset":
            following = (self.start or page.first or 0) + got
            is_last = total is not None and following >= total
        else:
            first = 1 if page.first is None else page.first
            following = (first if self.start is None else self.start) + 1
            is_last = total is not None and (following - first) * (self.limit or got) >= total
        return None if is_last else page.write(following)

    def _write(self, position: Json) -> str:
        """Encode the next page's position as a cursor.

        Raises:
            SchemaMismatch: The cursor is too long, or contains a credential, which callers would see.
        """
        if holds_secret(json.dumps(position, ensure_ascii=False), self.secrets):
            raise SchemaMismatch("The API's own cursor contains the server's credentials and cannot be used.")
        return self.page.write(position)

    def _read_cursor(self, body: Any) -> str | None:
        following: Json = None if self.page.next is None else get_value(body, self.page.next)
        if following is None or following == "" or following is False:
            return None
        if not self.page.is_position(following):
            raise SchemaMismatch(
                "The API's own cursor is neither a string nor a number in the supported range, and cannot be used."
            )
        return self._write(int(following) if isinstance(following, float) and following.is_integer() else following)

    def _read_link(self, answer: Answer) -> str | None:
        target = find_next_link(answer.headers.get("link", ""))
        if target is None:
            return None
        try:
            there = parse_qsl(urlsplit(urljoin(answer.url, target)).query, keep_blank_values=True)
            here = parse_qsl(urlsplit(answer.url).query, keep_blank_values=True)
        except ValueError:
            raise SchemaMismatch("The API's link to its next page is not a URL.") from None
        # Keep only changed parameters, because the query can contain credentials, which must not be in a cursor.
        changed = {name for name, _ in {*there} - {*here}}
        strange = sorted(changed - self.page.parameters)
        if strange:
            names = ", ".join(f"`{name}`" for name in strange)
            raise SchemaMismatch(
                f"The API's link to its next page has {names}, which the call does not have: "
                "add it to `http.page.parameters`."
            )
        return self._write([[name, value] for name, value in there if name in changed]) if changed else None


def find_next_link(header: str) -> str | None:
    """Return the next page's URL from a `Link` header (RFC 8288, 3), or `None`."""
    for target, parameters in _LINK.findall(header[:_LONGEST_HEADER]):
        pairs = ((name.lower(), quoted or token) for name, quoted, token in _PARAMETER.findall(parameters))
        # Only a link's first `rel` counts (RFC 8288, 3.3).
        relation = next((value for name, value in pairs if name == "rel"), "")
        if "next" in relation.lower().split():
            return str(target)
    return None


def _decode_cursor(cursor: str) -> Json:
    if len(cursor) > _LONGEST:
        return None
    try:
        value: Json = json.loads(base64.b64decode(cursor + "=" * (-len(cursor) % 4), b"-_", validate=True))
    except (ValueError, RecursionError):
        return None
    return value


def _number(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None
