"""Translates schemas in older dialects to 2020-12, so that schemas in two dialects can be compared.

The translation can lose annotations.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from stubwright.jsonschema import dialects

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright.ir import Json
    from stubwright.jsonschema.dialects import Dialect

_REUSABLE: Final = ("$defs", "definitions")
_READ_DIFFERENTLY: Final = frozenset({"$recursiveRef", "$recursiveAnchor", "contentEncoding", "contentMediaType"})
"""Keywords with another meaning in 2020-12. The content keywords were assertions in draft-07."""

_MOVED: Final = re.compile(r"/(items/\d|additionalItems|dependencies)(/|$)")
"""Locations that a reference must not point into, because the translation moves them."""


class _UntranslatableError(Exception):
    """Part of a schema cannot be expressed in 2020-12."""


def upgrade(schema: Json, dialect: Dialect) -> Json | None:
    """Translate a schema to 2020-12, with `$schema`, or return None if 2020-12 cannot express it."""
    if dialect is dialects.DRAFT_2020_12:
        return schema
    try:
        upgraded = _translate(schema, dialect, is_root=True)
    except _UntranslatableError:
        return None
    return {"$schema": dialects.DRAFT_2020_12.uri, **upgraded} if isinstance(upgraded, dict) else upgraded


def drop_formats(schema: Json, dialect: Dialect) -> Json:
    """Remove `format` from a schema and its subschemas."""
    return _rebuild(schema, dialect, frozenset({"format"}))


def _rebuild(schema: Json, dialect: Dialect, dropped: frozenset[str]) -> Json:
    if not isinstance(schema, dict):
        return schema
    return {
        keyword: change_below(keyword, value, dialect, lambda inner: _rebuild(inner, dialect, dropped))
        for keyword, value in schema.items()
        if keyword not in dropped
    }


def change_below(keyword: str, value: Json, dialect: Dialect, change: Change) -> Json:
    """Apply `change` to the subschemas in a keyword's value."""
    if isinstance(value, dict) and (keyword in dialect.named or keyword in _REUSABLE):
        return {
            name: inner if keyword == "dependencies" and isinstance(inner, list) else change(inner)
            for name, inner in value.items()
        }
    if isinstance(value, list) and keyword in dialect.listed:
        return [change(inner) for inner in value]
    return change(value) if keyword in dialect.single else value


def _translate(schema: Json, dialect: Dialect, *, is_root: bool = False) -> Json:
    if not isinstance(schema, dict):
        return schema
    _refuse(schema, dialect, is_root=is_root)
    if "$ref" in schema and dialect.reference_hides_siblings:
        keywords = {"$ref": schema["$ref"], **{key: schema[key] for key in _REUSABLE if key in schema}}
    else:
        keywords = {key: value for key, value in schema.items() if key in dialect.keywords or key in _REUSABLE}
    translated = {
        keyword: change_below(keyword, value, dialect, lambda inner: _translate(inner, dialect))
        for keyword, value in keywords.items()
        if keyword not in ("$schema", "$id", "id")
    }
    return dict(_rename_keywords(translated, dialect))


def _refuse(schema: Mapping[str, Json], dialect: Dialect, *, is_root: bool) -> None:
    """Raise _UntranslatableError if a keyword in the schema has another meaning in 2020-12."""
    types = schema.get("type")
    reference = schema.get("$ref")
    named = ("id",) if dialect is dialects.DRAFT_4 else ("$id", "$anchor")
    if (
        not _READ_DIFFERENTLY.isdisjoint(schema)
        or (not is_root and any(key in schema for key in named))
        or (isinstance(reference, str) and (not reference.startswith("#") or _MOVED.search(reference)))
        # Since 2020-12, items that match `contains` count as evaluated (Core, 10.3.1.3).
        or ("unevaluatedItems" in schema and "contains" in schema)
        or "format" in schema
    ):
        raise _UntranslatableError
    # In draft-04, `1.0` is not an integer.
    if dialect is dialects.DRAFT_4 and "integer" in (types if isinstance(types, list) else [types]):
        raise _UntranslatableError


def _rename_keywords(schema: Mapping[str, Json], dialect: Dialect) -> Iterator[tuple[str, Json]]:
    for keyword, value in schema.items():
        match keyword:
            case "items" if isinstance(value, list):
                yield "prefixItems", value
                if "additionalItems" in schema:
                    yield "items", schema["additionalItems"]
            case "additionalItems":
                pass
            case "dependencies" if isinstance(value, dict):
                yield (
                    "dependentRequired",
                    {name: dependency for name, dependency in value.items() if isinstance(dependency, list)},
                )
                yield (
                    "dependentSchemas",
                    {name: dependency for name, dependency in value.items() if not isinstance(dependency, list)},
                )
            case "minimum" | "maximum" if dialect is dialects.DRAFT_4:
                exclusive = f"exclusive{keyword.capitalize()}"
                yield (exclusive if schema.get(exclusive) is True else keyword), value
            case "exclusiveMinimum" | "exclusiveMaximum" if dialect is dialects.DRAFT_4:
                pass
            case _:
                yield keyword, value


if TYPE_CHECKING:
    from collections.abc import Callable

    Change = Callable[[Json], Json]
