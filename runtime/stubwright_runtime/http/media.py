"""Detects text media types, and files among a tool's arguments."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import Any, Final

from ..schema.validation import Validator
from ..values.json import Json, is_list, is_mapping
from ..values.text import find_target

_TEXTS: Final = frozenset(
    f"application/{name}"
    for name in (
        *("graphql", "javascript", "json-seq", "jsonl", "jsonlines", "jwt", "ndjson", "pem-certificate-chain", "sql"),
        *("toml", "x-javascript", "x-jsonlines", "x-ndjson", "x-sh", "x-toml", "x-www-form-urlencoded", "x-yaml"),
        *("xml", "yaml"),
    )
)
"""Textual media types outside `text/`."""


def is_text(media: str) -> bool:
    """Return whether a media type is textual but not JSON."""
    return media.startswith("text/") or media.endswith(("+xml", "+yaml", "+jwt")) or media in _TEXTS


_PLAIN: Final = ("string", "integer", "number", "boolean")
_DEPTH: Final = 12
"""The maximum depth of nested lists."""


@dataclass(frozen=True, slots=True)
class Content:
    """The content that the schema describes for an argument.

    Attributes:
        is_file: Whether the argument is base64 (JSON Schema, `contentEncoding`).
        is_base64: Whether the API expects base64, not bytes (OpenAPI 3.0, `format: byte`).
        media: The media type (JSON Schema, `contentMediaType`), or `None`.
        items: The content of list items after `first`, or `None` if the argument is not a list.
        may_be_text: Whether a schema alternative (`anyOf`, `oneOf`) allows plain text.
        texts: Strings from other alternatives (`const`, `enum`), which can look like base64.
        first: The contents of the first list items (JSON Schema, `prefixItems`).
    """

    is_file: bool
    is_base64: bool
    media: str | None
    items: Content | None
    may_be_text: bool = False
    texts: frozenset[str] = frozenset()
    first: Sequence[Content] = ()

    def has_files_in_lists(self) -> bool:
        """Return whether the argument is a list whose items can be files."""
        return any(item.is_file for item in (*self.first, *((self.items,) if self.items else ())))

    def list_items(self, count: int) -> list[Content]:
        """Return each item's content for a list with `count` items."""
        return [*self.first[:count], *[self.items or TEXT] * (count - len(self.first))]


TEXT: Final = Content(is_file=False, is_base64=False, media=None, items=None)
"""The content of an argument that is not a file."""


@dataclass(frozen=True, slots=True)
class Contents:
    """Argument contents, keyed by name and by pattern, and the content for all other names (`additionalProperties`)."""

    by_name: Mapping[str, Content]
    others: Content = TEXT
    by_pattern: Sequence[tuple[Validator, Content]] = ()

    def get(self, name: str) -> Content:
        """Return the content of the argument with this name."""
        if name in self.by_name:
            return self.by_name[name]
        return next((content for pattern, content in self.by_pattern if pattern.accepts(name)), self.others)


def find_contents(schema: Mapping[str, Any], argument: str | None = None) -> Contents:
    """Find the content of each argument in an input schema.

    Args:
        schema: The input schema.
        argument: If set, return the content of this argument's properties instead.
    """
    holders: list[Mapping[str, Any]] = [schema]
    if argument is not None:
        holders = [found for name, found in _list_properties(schema, [schema]) if name == argument]
    found_by_name: dict[str, list[Mapping[str, Any]]] = {}
    for name, found in _list_properties(schema, holders):
        found_by_name.setdefault(name, []).append(found)
    by_pattern = [
        (Validator({"pattern": pattern}), _find_content(schema, [found]))
        for pattern, found in _list_properties(schema, holders, "patternProperties")
    ]
    open_keys: list[Json] = [each.get("additionalProperties") for each in _list_applied(schema, holders)]
    others: list[Mapping[str, Any]] = [each for each in open_keys if isinstance(each, dict)]
    by_name = {name: _find_content(schema, found) for name, found in found_by_name.items()}
    return Contents(by_name, _find_content(schema, others) if others else TEXT, by_pattern)


def _list_properties(
    root: Mapping[str, Any], schemas: list[Mapping[str, Any]], key: str = "properties"
) -> Iterator[tuple[str, Mapping[str, Any]]]:
    for schema in _list_applied(root, schemas):
        properties: Json = schema.get(key)
        for name, found in properties.items() if isinstance(properties, dict) else ():
            if isinstance(found, dict):
                yield name, found


def _find_content(root: Mapping[str, Any], schemas: list[Mapping[str, Any]], depth: int = _DEPTH) -> Content:
    applied = list(_list_applied(root, schemas)) if depth else []
    files = [schema for schema in applied if schema.get("contentEncoding") == "base64"]
    media: list[Json] = [schema.get("contentMediaType") for schema in files or applied]
    items = [schema["items"] for schema in applied if isinstance(schema.get("items"), dict)]
    prefixes = [schema["prefixItems"] for schema in applied if depth == _DEPTH and is_list(schema.get("prefixItems"))]
    plain_lists = [schema["items"] for schema in applied if "prefixItems" not in schema and "items" in schema]
    places = [[item for item in (*place, *plain_lists) if is_mapping(item)] for place in zip_longest(*prefixes)]
    others = [schema for schema in applied if schema not in files]
    listed: list[Json] = [value for schema in others for value in (schema.get("const"), *(schema.get("enum") or ()))]
    texts = frozenset(value for value in listed if isinstance(value, str))
    return Content(
        is_file=bool(files),
        is_base64=any(schema.get("format") == "byte" for schema in files),
        media=next((name for name in media if isinstance(name, str)), None),
        items=_find_content(root, items, depth - 1) if items else None,
        may_be_text=bool(texts) or any(schema.get("type") in _PLAIN for schema in others),
        texts=texts,
        first=[_find_content(root, place, depth - 1) for place in places],
    )


def _list_applied(root: Mapping[str, Any], schemas: list[Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    """Yield each schema that applies to a value, following references, `allOf` and alternatives."""
    visited: set[int] = set()
    waiting: list[Any] = [*schemas]
    for schema in waiting:  # the list grows during the loop
        if not isinstance(schema, dict) or id(schema) in visited:
            continue
        visited.add(id(schema))
        yield schema
        waiting.append(find_target(root, schema.get("$ref")))
        for key in ("allOf", "anyOf", "oneOf"):
            parts: Json = schema.get(key)
            waiting += parts if is_list(parts) else ()
