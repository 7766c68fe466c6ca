"""Pages of an API, where its document makes them plain: the names of parameters, and the shape of what comes back.

Takes a tool that was made of an operation; gives what `http.page` says of it, or nothing. Names alone are not enough:
there is one list that can be the items, and what leads on stands beside it, or in a `Link` header that is described.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from toolwright.importers.openapi.documents import UnsupportedError

if TYPE_CHECKING:
    from toolwright.importers.openapi.documents import Documents
    from toolwright.importers.openapi.operations import Operation
    from toolwright.ir import Json

_CURSORS: Final = frozenset(
    {"after", "continuation", "continuationtoken", "cursor", "marker", "nextcursor", "nextpagetoken", "nexttoken"}
    | {"pagecursor", "pagetoken", "startcursor", "startingafter", "token"}
)
_NEXT: Final = (
    *("nextcursor", "nextpagetoken", "nexttoken", "nextpagecursor", "endcursor", "continuationtoken"),
    *("continuation", "nextmarker", "cursor", "after"),
)
_OFFSETS: Final = frozenset({"offset", "skip", "startat", "startindex", "start"})
_NUMBERS: Final = frozenset({"page", "pagenumber", "pagenum", "pageno", "pageindex"})
_LIMITS: Final = frozenset(
    {"count", "first", "limit", "maxresults", "pagelimit", "pagesize", "perpage", "resultsperpage", "size", "take"}
    | {"top"}
)
_ITEMS: Final = ("items", "data", "results", "records", "entries", "values", "elements", "list", "content", "hits")
_TOTALS: Final = ("total", "totalcount", "totalresults", "totalitems", "totalsize", "totalelements")
_MORE: Final = ("hasmore", "hasnextpage", "hasnext")
_AROUND: Final = ("meta", "metadata", "pagination", "paging", "pageinfo", "responsemetadata", "page")
"""What holds the rest where it does not stand beside the items."""

_DEEPEST: Final = 20


def is_linked(documents: Documents, operation: Operation) -> bool:
    """Whether a response of an operation has a `Link` header."""
    from toolwright.importers.openapi import operations

    try:
        answers = [documents.resolved(entry) for entry in operations.responses(documents, operation)]
    except UnsupportedError:
        return False
    return any(name.lower() == "link" for at in answers for name, _ in documents.entries(at, "headers"))


def recognized(tool: Mapping[str, Json], shared: Mapping[str, Json], *, linked: bool) -> dict[str, Json] | None:
    """What `http.page` says of a tool; None where the document does not make it plain.

    Args:
        tool: The tool, with its `http`.
        shared: The shared schemas that it may refer to.
        linked: Whether its responses have a `Link` header.
    """
    http: Mapping[str, Json] = tool["toolwright"]["http"]
    if http.get("method", "GET") != "GET" or "outputSchema" not in tool:
        return None
    asked = _Asked.of(tool)
    given = _Given(shared)
    schema = given.resolved(tool["outputSchema"])
    items = given.items(schema, tool["name"])
    if items is None:
        return None
    page = _page(asked, given, schema, items, linked=linked)
    if page is None or ("cursor" in asked.every and page.get("argument") != "cursor"):
        return None
    return page


def _page(
    asked: _Asked, given: _Given, schema: Mapping[str, Json], items: str, *, linked: bool
) -> dict[str, Json] | None:
    found = dict(given.around(schema))
    more = next((found[name] for name in _MORE if name in found), None)
    at = {"items": items} if items else {}
    limit = asked.one(_LIMITS)
    cursor = asked.one(_CURSORS)
    if cursor is not None and cursor not in asked.required:
        following = next((found[name] for name in _NEXT if name in found and given.is_text(schema, found[name])), None)
        if following is None and more is not None:
            by_item = f"{items}/-/id" if _bare(cursor) == "startingafter" else None
            following = found.get("lastid", by_item)
        if following is not None:
            led: dict[str, Json] = {"by": "cursor", "argument": cursor, **at, "next": following}
            return led | ({"more": more} if more else {}) | ({"limit": limit} if limit else {})
    if linked:
        start = next((one for one in (asked.one(_NUMBERS), asked.one(_OFFSETS), cursor) if one is not None), None)
        return {"by": "link", **({"argument": start} if start else {}), **at}
    total = next((found[name] for name in _TOTALS if name in found), None)
    rest = {**({"total": total} if total else {}), **({"more": more} if more else {})}
    for kind, names, first in (("offset", _OFFSETS, 0), ("number", _NUMBERS, 1)):
        start = asked.one(names)
        if start is None or not (limit or rest) or not asked.is_number(start):
            continue
        page: dict[str, Json] = {"by": kind, "argument": start, **at, **rest}
        if limit is not None:
            page["limit"] = limit
            size = asked.properties[limit].get("default")
            page |= {"size": size} if isinstance(size, int) and not isinstance(size, bool) and size > 0 else {}
        least = asked.properties[start].get("default", asked.properties[start].get("minimum", first))
        if kind == "number" and least == 0:
            first = 0
        if start in asked.required or first != (kind == "number"):
            page["first"] = first
        return page
    return None


@dataclass(frozen=True, slots=True)
class _Asked:
    """The arguments of a tool that are parameters of the query by themselves."""

    properties: Mapping[str, Mapping[str, Json]]
    required: frozenset[str]
    every: frozenset[str]

    @classmethod
    def of(cls, tool: Mapping[str, Json]) -> _Asked:
        schema = tool["inputSchema"]
        every: Mapping[str, Json] = schema.get("properties") or {}
        query: Mapping[str, Json] = tool["toolwright"]["http"].get("query") or {}
        texts = {said["value"] if isinstance(said, dict) else said for said in query.values()}
        own = {name: one for name, one in every.items() if f"{{{name}}}" in texts and isinstance(one, dict)}
        return cls(own, frozenset(schema.get("required") or ()), frozenset(every))

    def one(self, names: frozenset[str]) -> str | None:
        """The argument that is called like one of these, where there is one and no other."""
        found = [name for name in self.properties if _bare(name) in names]
        return found[0] if len(found) == 1 else None

    def is_number(self, name: str) -> bool:
        """Whether an argument is a number."""
        kinds = self.properties[name].get("type")
        return kinds in ("integer", "number") or (
            isinstance(kinds, list) and not {"integer", "number"}.isdisjoint(kinds)
        )


@dataclass(frozen=True, slots=True)
class _Given:
    """What a response looks like."""

    shared: Mapping[str, Json]

    def resolved(self, schema: Json, depth: int = 0) -> Mapping[str, Json]:
        """A schema with what it refers to and combines, as far as there is only one way to read it."""
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return {}
        parts: list[Json] = [*(schema.get("allOf") or ())]
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/schemas/"):
            parts.append(self.shared.get(reference.removeprefix("#/schemas/")))
        for key in ("anyOf", "oneOf"):
            choices = [each for each in schema.get(key) or () if each != {"type": "null"}]
            parts += choices if len(choices) == 1 else []
        made: dict[str, Json] = dict(schema)
        for part in parts:
            inner = self.resolved(part, depth + 1)
            properties = {**(made.get("properties") or {}), **(inner.get("properties") or {})}
            made = {**inner, **made, **({"properties": properties} if properties else {})}
        return made

    def items(self, schema: Mapping[str, Json], tool: str) -> str | None:
        """Where the items are, where one list can be them; None where none can, or several."""
        if self._is(schema, "array"):
            return ""
        lists = [name for name, each in self._properties(schema) if self._is(self.resolved(each), "array")]
        likely = [name for name in lists if _bare(name) in _ITEMS or tool.lower().endswith(name.lower())]
        found = lists if len(lists) == 1 else likely
        return f"/{_escaped(found[0])}" if len(found) == 1 else None

    def around(self, schema: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
        """What stands beside the items, or in what holds such things: bare names, and where they are."""
        for name, each in self._properties(schema):
            if _bare(name) in _AROUND:
                for inner, _ in self._properties(self.resolved(each)):
                    yield _bare(inner), f"/{_escaped(name)}/{_escaped(inner)}"
        yield from ((_bare(name), f"/{_escaped(name)}") for name, _ in self._properties(schema))

    def is_text(self, schema: Mapping[str, Json], pointer: str) -> bool:
        """Whether a text or a number stands there that is no URL."""
        here = schema
        for step in pointer.split("/")[1:]:
            name = step.replace("~2", "*").replace("~1", "/").replace("~0", "~")
            here = self.resolved((here.get("properties") or {}).get(name))
        return here.get("format") not in ("uri", "url") and not self._is(here, "object") and not self._is(here, "array")

    @staticmethod
    def _properties(schema: Mapping[str, Json]) -> list[tuple[str, Json]]:
        return [*(schema.get("properties") or {}).items()]

    @staticmethod
    def _is(schema: Mapping[str, Json], kind: str) -> bool:
        kinds = schema.get("type")
        return kinds == kind or (isinstance(kinds, list) and kind in kinds)


def _bare(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _escaped(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1").replace("*", "~2")
