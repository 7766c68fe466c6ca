"""The supported JSON Schema dialects, and where each allows subschemas."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from stubwright.diagnostics import Pointer
    from stubwright.ir import Json


@dataclass(frozen=True)
class Dialect:
    """A JSON Schema dialect.

    Attributes:
            name: The dialect's name in messages.
    uri: The meta-schema's URI, as in `$schema`.
        defs: The keyword for reusable schemas.
        single: Keywords whose value is a schema.
        listed: Keywords whose value is a list of schemas.
        named: Keywords whose value is an object of schemas.
        plain: Keywords whose value contains no schema.
    """

    name: str
    uri: str
    defs: Literal["$defs", "definitions"]
    single: frozenset[str]
    listed: frozenset[str]
    named: frozenset[str]
    plain: frozenset[str]

    @cached_property
    def keywords(self) -> frozenset[str]:
        """All keywords in the dialect."""
        return self.single | self.listed | self.named | self.plain

    @cached_property
    def holders(self) -> frozenset[str]:
        """Keys with schemas in their values, including other dialects' keys for reusable schemas."""
        return self.single | self.listed | self.named | _REUSABLE

    @cached_property
    def foreign(self) -> frozenset[str]:
        """Other dialects' keys for reusable schemas, which this meta-schema ignores."""
        return _REUSABLE - self.named

    @property
    def reference_hides_siblings(self) -> bool:
        """True if keywords next to `$ref` are ignored, as before 2019-09 (draft-07, section 8.3)."""
        return self.defs == "definitions"


_CORE = frozenset({"$ref", "$schema", "default", "description", "enum", "format", "title", "type"})
_NUMBERS = frozenset({"exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum", "multipleOf"})
_STRINGS = frozenset({"maxLength", "minLength", "pattern"})
_CONTAINERS = frozenset({"maxItems", "maxProperties", "minItems", "minProperties", "required", "uniqueItems"})
_PLAIN_4 = _CORE | _NUMBERS | _STRINGS | _CONTAINERS
_SINGLE_4 = frozenset({"additionalItems", "additionalProperties", "items", "not"})
_LISTED_4 = frozenset({"allOf", "anyOf", "items", "oneOf"})
_NAMED_4 = frozenset({"definitions", "dependencies", "patternProperties", "properties"})
_SINGLE_6 = _SINGLE_4 | {"contains", "propertyNames"}
_PLAIN_6 = _PLAIN_4 | {"$id", "const", "examples"}
_SINGLE_7 = _SINGLE_6 | {"if", "then", "else"}
_PLAIN_7 = _PLAIN_6 | {"$comment", "contentEncoding", "contentMediaType", "readOnly", "writeOnly"}
_SINGLE_2019 = _SINGLE_7 | {"contentSchema", "unevaluatedItems", "unevaluatedProperties"}
_NAMED_2019 = _NAMED_4 | {"$defs", "dependentSchemas"}
_PLAIN_2019 = _PLAIN_7 | {"$anchor", "$vocabulary", "dependentRequired", "deprecated", "maxContains", "minContains"}

DRAFT_4 = Dialect(
    name="draft-04",
    uri="http://json-schema.org/draft-04/schema#",
    defs="definitions",
    single=_SINGLE_4,
    listed=_LISTED_4,
    named=_NAMED_4,
    plain=_PLAIN_4 | {"id"},
)
DRAFT_6 = Dialect(
    name="draft-06",
    uri="http://json-schema.org/draft-06/schema#",
    defs="definitions",
    single=_SINGLE_6,
    listed=_LISTED_4,
    named=_NAMED_4,
    plain=_PLAIN_6,
)
DRAFT_7 = Dialect(
    name="draft-07",
    uri="http://json-schema.org/draft-07/schema#",
    defs="definitions",
    single=_SINGLE_7,
    listed=_LISTED_4,
    named=_NAMED_4,
    plain=_PLAIN_7,
)
DRAFT_2019_09 = Dialect(
    name="2019-09",
    uri="https://json-schema.org/draft/2019-09/schema",
    defs="$defs",
    single=_SINGLE_2019,
    listed=_LISTED_4,
    named=_NAMED_2019,
    plain=_PLAIN_2019 | {"$recursiveAnchor", "$recursiveRef"},
)
DRAFT_2020_12 = Dialect(
    name="2020-12",
    uri="https://json-schema.org/draft/2020-12/schema",
    defs="$defs",
    single=_SINGLE_2019 - {"additionalItems"},
    listed=_LISTED_4 - {"items"} | {"prefixItems"},
    named=_NAMED_2019,
    plain=_PLAIN_2019 | {"$dynamicAnchor", "$dynamicRef"},
)

DIALECTS = (DRAFT_2020_12, DRAFT_2019_09, DRAFT_7, DRAFT_6, DRAFT_4)
"""The supported dialects, newest first."""

KEYWORDS = frozenset[str]().union(*(dialect.keywords for dialect in DIALECTS))
"""The keywords in all dialects."""

_BY_URI = {dialect.uri.rstrip("#"): dialect for dialect in DIALECTS}
_REUSABLE = frozenset({"$defs", "definitions"})


def find_dialect(schema: Json, default: Dialect = DRAFT_2020_12) -> Dialect | None:
    """Return the dialect that `$schema` declares, `default` if it is absent, or None if it is not supported.

    The default is 2020-12 (MCP 2025-11-25, "JSON Schema Usage"). An empty fragment in the URI is ignored.
    """
    if not isinstance(schema, dict) or "$schema" not in schema:
        return default
    uri = schema["$schema"]
    return _BY_URI.get(uri.removesuffix("#")) if isinstance(uri, str) else None


def iterate_subschemas(schema: Json, dialect: Dialect) -> Iterator[tuple[Pointer, Json]]:
    """Yield the schema itself, with an empty pointer, and each subschema, in source order.

    Invalid values are included where a schema is expected. `$defs` and `definitions` are included in every dialect,
    since references use them in practice.
    """
    holders = dialect.holders
    pending: list[tuple[Pointer, Json]] = [((), schema)]
    while pending:
        pointer, here = pending.pop()
        yield pointer, here
        if isinstance(here, dict) and not holders.isdisjoint(here):
            pending += reversed([((*pointer, *steps), child) for steps, child in iterate_children(here, dialect)])


def is_schema(root: Json, pointer: Pointer, dialect: Dialect) -> bool:
    """Return whether the dialect defines a schema at `pointer`, where its meta-schema then checks the value."""
    value, rest = root, pointer
    while rest:
        keyword = rest[0]
        value = value[keyword]
        in_many = (keyword in dialect.named and isinstance(value, dict)) or (
            keyword in dialect.listed and isinstance(value, list)
        )
        if in_many and len(rest) > 1:
            value, rest = value[rest[1]], rest[2:]
        elif keyword in dialect.single and isinstance(value, dict | bool):
            rest = rest[1:]
        else:
            return False
    return isinstance(value, dict | bool)


def iterate_children(schema: Mapping[str, Json], dialect: Dialect) -> Iterator[tuple[Pointer, Json]]:
    """Yield the direct subschemas of a schema, with their pointers."""
    holders = dialect.holders
    for keyword, value in schema.items():
        if keyword in holders:
            yield from _list_children(keyword, value, dialect)


def _list_children(keyword: str, value: Json, dialect: Dialect) -> Iterator[tuple[Pointer, Json]]:
    if isinstance(value, dict) and (keyword in dialect.named or keyword in _REUSABLE):
        for name, child in value.items():
            # A dependency can also be a list of property names.
            if keyword != "dependencies" or not isinstance(child, list):
                yield (keyword, name), child
    elif isinstance(value, list) and keyword in dialect.listed:
        for index, child in enumerate(value):
            yield (keyword, index), child
    elif keyword in dialect.single and not (keyword == "items" and isinstance(value, list)):
        yield (keyword,), value
