"""Detects an API's pagination from parameter names and response structure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from stubwright.importers.openapi.documents import UnsupportedError

if TYPE_CHECKING:
    from stubwright.importers.openapi.documents import Documents
    from stubwright.importers.openapi.operations import Operation
    from stubwright.ir import Json

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
"""Names of objects that contain page metadata."""

_DEEPEST: Final = 20


def is_linked(documents: Documents, operation: Operation) -> bool:
    """Return whether any of an operation's responses has a `Link` header."""
    from stubwright.importers.openapi import operations

    try:
        responses = [documents.resolve(entry) for entry in operations.list_responses(documents, operation)]
    except UnsupportedError:
        return False
    return any(name.lower() == "link" for at in responses for name, _ in documents.list_entries(at, "headers"))


def recognize(tool: Mapping[str, Json], shared: Mapping[str, Json], *, linked: bool) -> dict[str, Json] | None:
    """Return a tool's `http.page`, or None if its pagination is unclear.

    Args:
        tool: The tool, with its `http`.
        shared: The shared schemas that it can reference.
        linked: True if its responses have a `Link` header.
    """
    http: Mapping[str, Json] = tool["stubwright"]["http"]
    if http.get("method", "GET") != "GET" or "outputSchema" not in tool:
        return None
    arguments = _QueryArguments.from_tool(tool)
    response = _Response(shared)
    schema = response.resolve(tool["outputSchema"])
    items = response.find_items(schema, tool["name"])
    if items is None:
        return None
    page = _find_page(arguments, response, schema, items, linked=linked)
    # `cursor` replaces the API's argument, so no other argument can have this name.
    if page is None or ("cursor" in arguments.all_names and page.get("argument") != "cursor"):
        return None
    return page


def _find_page(
    arguments: _QueryArguments, response: _Response, schema: Mapping[str, Json], items: str, *, linked: bool
) -> dict[str, Json] | None:
    paths = dict(response.find_paths(schema))
    more = next((paths[name] for name in _MORE if name in paths), None)
    at = {"items": items} if items else {}
    limit = arguments.find_only(_LIMITS)
    cursor = arguments.find_only(_CURSORS)
    if cursor is not None and cursor not in arguments.required:
        next_path = next(
            (paths[name] for name in _NEXT if name in paths and response.is_text(schema, paths[name])), None
        )
        if next_path is None and more is not None:
            by_item = f"{items}/-/id" if _simplify(cursor) == "startingafter" else None
            next_path = paths.get("lastid", by_item)
        if next_path is not None:
            cursor_page: dict[str, Json] = {"by": "cursor", "argument": cursor, **at, "next": next_path}
            return cursor_page | ({"more": more} if more else {}) | ({"limit": limit} if limit else {})
    if linked:
        start = next(
            (
                argument
                for argument in (arguments.find_only(_NUMBERS), arguments.find_only(_OFFSETS), cursor)
                if argument is not None
            ),
            None,
        )
        return {"by": "link", **({"argument": start} if start else {}), **at}
    total = next((paths[name] for name in _TOTALS if name in paths), None)
    rest = {**({"total": total} if total else {}), **({"more": more} if more else {})}
    for kind, names, first in (("offset", _OFFSETS, 0), ("number", _NUMBERS, 1)):
        start = arguments.find_only(names)
        if start is None or not (limit or rest) or not arguments.is_number(start):
            continue
        page: dict[str, Json] = {"by": kind, "argument": start, **at, **rest}
        if limit is not None:
            page["limit"] = limit
            size = arguments.properties[limit].get("default")
            page |= {"size": size} if isinstance(size, int) and not isinstance(size, bool) and size > 0 else {}
        least = arguments.properties[start].get("default", arguments.properties[start].get("minimum", first))
        if kind == "number" and least == 0:
            first = 0
        # Without `first`, page numbers start at 1 and offsets at 0.
        if start in arguments.required or first != (kind == "number"):
            page["first"] = first
        return page
    return None


@dataclass(frozen=True, slots=True)
class _QueryArguments:
    """A tool's arguments that are whole query parameters."""

    properties: Mapping[str, Mapping[str, Json]]
    required: frozenset[str]
    all_names: frozenset[str]

    @classmethod
    def from_tool(cls, tool: Mapping[str, Json]) -> _QueryArguments:
        schema = tool["inputSchema"]
        all_properties: Mapping[str, Json] = schema.get("properties") or {}
        query: Mapping[str, Json] = tool["stubwright"]["http"].get("query") or {}
        query_values = {
            parameter["value"] if isinstance(parameter, dict) else parameter for parameter in query.values()
        }
        properties = {
            name: schema
            for name, schema in all_properties.items()
            if f"{{{name}}}" in query_values and isinstance(schema, dict)
        }
        return cls(properties, frozenset(schema.get("required") or ()), frozenset(all_properties))

    def find_only(self, names: frozenset[str]) -> str | None:
        matching = [name for name in self.properties if _simplify(name) in names]
        return matching[0] if len(matching) == 1 else None

    def is_number(self, name: str) -> bool:
        kinds = self.properties[name].get("type")
        return kinds in ("integer", "number") or (
            isinstance(kinds, list) and not {"integer", "number"}.isdisjoint(kinds)
        )


@dataclass(frozen=True, slots=True)
class _Response:
    shared: Mapping[str, Json]

    def resolve(self, schema: Json, depth: int = 0) -> Mapping[str, Json]:
        """Return a schema with references and combinations resolved where the result is unambiguous."""
        if not isinstance(schema, dict) or depth > _DEEPEST:
            return {}
        parts: list[Json] = [*(schema.get("allOf") or ())]
        reference = schema.get("$ref")
        if isinstance(reference, str) and reference.startswith("#/schemas/"):
            parts.append(self.shared.get(reference.removeprefix("#/schemas/")))
        for key in ("anyOf", "oneOf"):
            choices = [choice for choice in schema.get(key) or () if choice != {"type": "null"}]
            parts += choices if len(choices) == 1 else []
        merged: dict[str, Json] = dict(schema)
        for part in parts:
            inner = self.resolve(part, depth + 1)
            properties = {**(merged.get("properties") or {}), **(inner.get("properties") or {})}
            merged = {**inner, **merged, **({"properties": properties} if properties else {})}
        return merged

    def find_items(self, schema: Mapping[str, Json], tool: str) -> str | None:
        """Return the pointer to the items, or None if the pointer is ambiguous."""
        if self._is(schema, "array"):
            return ""
        lists = [name for name, property_ in self._properties(schema) if self._is(self.resolve(property_), "array")]
        likely = [name for name in lists if _simplify(name) in _ITEMS or tool.lower().endswith(name.lower())]
        candidates = lists if len(lists) == 1 else likely
        return f"/{_escape(candidates[0])}" if len(candidates) == 1 else None

    def find_paths(self, schema: Mapping[str, Json]) -> Iterator[tuple[str, str]]:
        """Yield the simplified names and pointers of properties next to the items and in metadata objects."""
        for name, property_ in self._properties(schema):
            if _simplify(name) in _AROUND:
                for inner, _ in self._properties(self.resolve(property_)):
                    yield _simplify(inner), f"/{_escape(name)}/{_escape(inner)}"
        yield from ((_simplify(name), f"/{_escape(name)}") for name, _ in self._properties(schema))

    def is_text(self, schema: Mapping[str, Json], pointer: str) -> bool:
        """Return whether the value is a string or a number, but not a URL."""
        target = schema
        for step in pointer.split("/")[1:]:
            # In `http.select` and `http.page` pointers, `*` matches each item, and `~2` escapes a literal `*`.
            name = step.replace("~2", "*").replace("~1", "/").replace("~0", "~")
            target = self.resolve((target.get("properties") or {}).get(name))
        return (
            target.get("format") not in ("uri", "url")
            and not self._is(target, "object")
            and not self._is(target, "array")
        )

    @staticmethod
    def _properties(schema: Mapping[str, Json]) -> list[tuple[str, Json]]:
        return [*(schema.get("properties") or {}).items()]

    @staticmethod
    def _is(schema: Mapping[str, Json], kind: str) -> bool:
        kinds = schema.get("type")
        return kinds == kind or (isinstance(kinds, list) and kind in kinds)


def _simplify(name: str) -> str:
    return re.sub(r"[\W_]", "", name).lower()


def _escape(name: str) -> str:
    return name.replace("~", "~0").replace("/", "~1").replace("*", "~2")
