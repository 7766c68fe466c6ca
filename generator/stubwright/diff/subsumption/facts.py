"""Derives facts about an instance from the keywords of a schema that the instance matches or violates.

A claim states that an instance matches or violates a schema. The claim implies facts about the instance: its types,
bounds, keys and items, and claims about its parts. The facts can be weaker than the claim, but never stronger (JSON
Schema 2020-12, Core 10 and 11, Validation 6).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any, Final, TypeAlias

if TYPE_CHECKING:
    from stubwright.ir import Json
    from stubwright.jsonschema.dialects import Dialect

KINDS: Final = frozenset({"null", "boolean", "integer", "fraction", "string", "array", "object"})
"""The instance types. A `fraction` is a number that is not an `integer`."""

_NUMBERS: Final = frozenset({"integer", "fraction"})
KINDS_OF_KEYWORDS: Final[Mapping[str, frozenset[str]]] = {
    **dict.fromkeys(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"), _NUMBERS),
    **dict.fromkeys(("minLength", "maxLength", "pattern", "format"), frozenset({"string"})),
    **dict.fromkeys(("minItems", "maxItems", "uniqueItems"), frozenset({"array"})),
    **dict.fromkeys(("minProperties", "maxProperties"), frozenset({"object"})),
}
_CONTENT: Final = frozenset({"contentEncoding", "contentMediaType", "contentSchema"})
_WITHOUT_MEANING: Final = frozenset(
    {"title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly"}
    | {"$anchor", "$dynamicAnchor", "$recursiveAnchor"}
    | {"$schema", "$id", "id", "$vocabulary", "$defs", "definitions"}
    | {"then", "else", "minContains", "maxContains", "exclusiveMinimum", "exclusiveMaximum"}
)
"""Keywords that assert nothing, or only next to others. The two bounds are assertions except in draft-04."""


@dataclass(frozen=True, slots=True)
class Claim:
    """A schema that an instance matches (`holds`) or violates. `side` is the index of the schema's document."""

    schema: Json = field(compare=False, hash=False)
    side: int
    holds: bool
    text: str

    def derive(self, schema: Json, *, holds: bool | None = None) -> Claim:
        """Return a claim about another schema in this claim's document."""
        return make_claim(schema, self.side, holds=self.holds if holds is None else holds)

    @property
    def negation(self) -> Claim:
        """The claim that is true exactly if this one is false."""
        return Claim(self.schema, self.side, not self.holds, self.text)


def make_claim(schema: Json, side: int, *, holds: bool) -> Claim:
    """Return a claim. If the schema has no references, the claim does not depend on a document (`side` is -1)."""
    text = json.dumps(schema, sort_keys=True)
    return Claim(schema, side if '"$ref"' in text else -1, holds, text)


@dataclass(frozen=True, slots=True)
class IsOfKind:
    """The instance has one of these types."""

    kinds: frozenset[str]


@dataclass(frozen=True, slots=True)
class KeywordFact:
    """An instance of the keyword's type fulfills or violates a keyword that has no subschemas."""

    keyword: str
    value: Any
    holds: bool


@dataclass(frozen=True, slots=True)
class OneOfValues:
    """The instance is one of these values."""

    values: Sequence[Json]


@dataclass(frozen=True, slots=True)
class EachItem:
    """If the instance is an array, the first items match the claims in `prefix`, and all other items match `rest`."""

    prefix: Sequence[Claim]
    rest: Claim | None


@dataclass(frozen=True, slots=True)
class SomeItem:
    """An item matches a claim: the item at `start` if `is_exact`, otherwise an item at or after it."""

    start: int
    is_exact: bool
    claim: Claim | None = None


@dataclass(frozen=True, slots=True)
class EachMember:
    """If the instance is an object, each value matches the claims for its key, as in JSON Schema."""

    named: Mapping[str, Claim]
    patterns: Mapping[str, Claim]
    rest: Claim | None


@dataclass(frozen=True, slots=True)
class SomeMember:
    """A value matches a claim: the value at the key `name`, or at a key that the other fields restrict."""

    name: str | None = None
    pattern: str | None = None
    other_names: frozenset[str] = frozenset()
    other_patterns: tuple[str, ...] = ()
    claim: Claim | None = None


@dataclass(frozen=True, slots=True)
class NoMember:
    """If the instance is an object, it does not have this key."""

    name: str


@dataclass(frozen=True, slots=True)
class EachName:
    """If the instance is an object, each key matches the claim."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class SomeName:
    """A key matches the claim."""

    claim: Claim


@dataclass(frozen=True, slots=True)
class Disjunction:
    """All facts in at least one alternative are true."""

    alternatives: Sequence[Facts]


Fact: TypeAlias = (
    Claim
    | IsOfKind
    | KeywordFact
    | OneOfValues
    | EachItem
    | SomeItem
    | EachMember
    | SomeMember
    | NoMember
    | EachName
    | SomeName
    | Disjunction
)
Facts: TypeAlias = tuple[Fact, ...]

_OBJECT: Final = IsOfKind(frozenset({"object"}))
_ARRAY: Final = IsOfKind(frozenset({"array"}))
IMPOSSIBLE: Final = IsOfKind(frozenset())


def find_kind(value: Json) -> str:
    """Return a value's type."""
    match value:
        case None:
            return "null"
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "integer" if value.is_integer() else "fraction"
        case str():
            return "string"
        case list():
            return "array"
        case _:
            return "object"


def list_facts(claim: Claim, dialect: Dialect, *, asserts_formats: bool) -> Facts:
    """Return the facts that follow from a claim."""
    schema = claim.schema
    if not isinstance(schema, dict):
        return () if (schema is not False) == claim.holds else (IMPOSSIBLE,)
    keywords = _list_keywords(schema, dialect, asserts_formats=asserts_formats)
    if claim.holds:
        return tuple(fact for keyword in keywords for fact in _fulfil(keyword, schema, claim, dialect))
    violations = [facts for keyword in keywords for facts in _violate(keyword, schema, claim, dialect)]
    return violations[0] if len(violations) == 1 else (Disjunction(violations),)


def _list_keywords(schema: Mapping[str, Any], dialect: Dialect, *, asserts_formats: bool) -> list[str]:
    """Return a schema's assertion keywords, but only one keyword of each group of related keywords."""
    if "$ref" in schema and dialect.reference_hides_siblings:
        return ["$ref"]
    ignored = _WITHOUT_MEANING if dialect.name == "draft-04" else _WITHOUT_MEANING - _EXCLUSIVE
    if not dialect.reference_hides_siblings:  # since 2019-09, they are annotations
        ignored |= _CONTENT
    if not asserts_formats:
        ignored |= {"format"}
    groups = {word: _GROUPS.get(word, word) for word in schema if word in dialect.keywords and word not in ignored}
    return [*dict.fromkeys(groups.values())]


_EXCLUSIVE: Final = frozenset({"exclusiveMinimum", "exclusiveMaximum"})
_GROUPS: Final = {
    **dict.fromkeys(("properties", "patternProperties", "additionalProperties"), "properties"),
    **dict.fromkeys(("items", "prefixItems", "additionalItems"), "items"),
}


def _fulfil(keyword: str, schema: Mapping[str, Any], claim: Claim, dialect: Dialect) -> Iterator[Fact]:
    value: Any = schema.get(keyword)
    match keyword:
        case "$ref":
            yield claim.derive({"$ref": value})
        case "type":
            yield IsOfKind(_read_types(value))
        case "enum":
            yield OneOfValues(value)
        case "const":
            yield OneOfValues([value])
        case "allOf":
            yield from (claim.derive(inner) for inner in value)
        case "anyOf":
            yield Disjunction([(claim.derive(inner),) for inner in value])
        case "oneOf":
            yield Disjunction(
                [
                    tuple(claim.derive(other, holds=place == number) for place, other in enumerate(value))
                    for number in range(len(value))
                ]
            )
        case "not":
            yield claim.derive(value, holds=False)
        case "if":
            yield Disjunction(_list_branches(schema, claim, holds=True))
        case "properties":
            yield EachMember(*_read_members(schema, claim))
        case "propertyNames":
            yield EachName(claim.derive(value))
        case "required" if isinstance(value, list):
            yield from (_unless_object(SomeMember(name)) for name in value)
        case "dependentRequired" | "dependentSchemas" | "dependencies":
            if keyword != "dependencies" or dialect.reference_hides_siblings:
                for name, needed in value.items():
                    facts = (
                        [SomeMember(other) for other in needed] if isinstance(needed, list) else [claim.derive(needed)]
                    )
                    yield Disjunction([(IsOfKind(KINDS - {"object"}),), (NoMember(name),), (SomeMember(name), *facts)])
        case "items":
            yield EachItem(*_read_items(schema, claim, dialect))
        case "contains":
            if schema.get("minContains", 1) >= 1 or "minContains" not in dialect.keywords:
                yield Disjunction([(IsOfKind(KINDS - {"array"}),), (_ARRAY, SomeItem(0, False, claim.derive(value)))])
        case _ if keyword in KINDS_OF_KEYWORDS:
            yield from (KeywordFact(*pair, holds=True) for pair in _read_plain(keyword, schema, dialect))


def _violate(keyword: str, schema: Mapping[str, Any], claim: Claim, dialect: Dialect) -> Iterator[Facts]:
    """Yield the facts that follow from each possible violation of a keyword, or `()` for an unknown violation."""
    value: Any = schema.get(keyword)
    match keyword:
        case "$ref":
            yield (claim.derive({"$ref": value}),)
        case "type":
            yield (IsOfKind(KINDS - _read_types(value)),)
        case "allOf":
            yield from ((claim.derive(inner),) for inner in value)
        case "anyOf":
            yield tuple(claim.derive(inner) for inner in value)
        case "oneOf":
            yield tuple(claim.derive(inner) for inner in value)
            yield from (tuple(claim.derive(inner, holds=True) for inner in pair) for pair in combinations(value, 2))
        case "not":
            yield (claim.derive(value, holds=True),)
        case "if":
            yield from _list_branches(schema, claim, holds=False)
        case "properties":
            named, patterns, rest = _read_members(schema, claim)
            yield from ((_OBJECT, SomeMember(name, claim=inner)) for name, inner in named.items())
            yield from ((_OBJECT, SomeMember(pattern=text, claim=inner)) for text, inner in patterns.items())
            if rest is not None:
                yield _OBJECT, SomeMember(other_names=frozenset(named), other_patterns=tuple(patterns), claim=rest)
        case "propertyNames":
            yield _OBJECT, SomeName(claim.derive(value))
        case "required" if isinstance(value, list):
            yield from ((_OBJECT, NoMember(name)) for name in value)
        case "dependentRequired" | "dependentSchemas" | "dependencies":
            if keyword == "dependencies" and not dialect.reference_hides_siblings:
                yield ()
                return
            for name, needed in value.items():
                lacking = [*map(NoMember, needed)] if isinstance(needed, list) else [claim.derive(needed)]
                yield from ((_OBJECT, SomeMember(name), fact) for fact in lacking)
        case "items":
            prefix, rest = _read_items(schema, claim, dialect)
            yield from ((_ARRAY, SomeItem(place, True, inner)) for place, inner in enumerate(prefix))
            if rest is not None:
                yield _ARRAY, SomeItem(len(prefix), False, rest)
        case "contains":
            if {"minContains", "maxContains"} & schema.keys() & dialect.keywords:
                yield (_ARRAY,)
            else:
                yield _ARRAY, EachItem((), claim.derive(value))
        case _ if keyword in KINDS_OF_KEYWORDS:
            kinds = IsOfKind(KINDS_OF_KEYWORDS[keyword])
            yield from ((kinds, KeywordFact(*pair, holds=False)) for pair in _read_plain(keyword, schema, dialect))
        case _:
            yield ()


def _unless_object(fact: Fact) -> Fact:
    return Disjunction([(IsOfKind(KINDS - {"object"}),), (_OBJECT, fact)])


def _read_types(value: Any) -> frozenset[str]:
    types = {value} if isinstance(value, str) else {*value}
    return frozenset(types - {"number"}) | (_NUMBERS if "number" in types else frozenset())


def _read_plain(keyword: str, schema: Mapping[str, Any], dialect: Dialect) -> Iterator[tuple[str, Any]]:
    exclusive = f"exclusive{keyword.capitalize()}"
    if dialect.name == "draft-04" and keyword in ("minimum", "maximum") and schema.get(exclusive) is True:
        yield exclusive, schema[keyword]
    elif keyword != "uniqueItems" or schema[keyword] is True:
        yield keyword, schema[keyword]


def _list_branches(schema: Mapping[str, Any], claim: Claim, *, holds: bool) -> list[Facts]:
    condition = schema["if"]
    return [
        (claim.derive(condition, holds=is_met), claim.derive(schema.get(keyword, True), holds=holds))
        for is_met, keyword in ((True, "then"), (False, "else"))
    ]


def _read_members(
    schema: Mapping[str, Any], claim: Claim
) -> tuple[Mapping[str, Claim], Mapping[str, Claim], Claim | None]:
    named, patterns = (
        {name: claim.derive(inner) for name, inner in schema.get(keyword, {}).items()}
        for keyword in ("properties", "patternProperties")
    )
    return named, patterns, claim.derive(schema["additionalProperties"]) if "additionalProperties" in schema else None


def _read_items(schema: Mapping[str, Any], claim: Claim, dialect: Dialect) -> tuple[Sequence[Claim], Claim | None]:
    first, rest = "prefixItems", "items"
    if "prefixItems" not in dialect.keywords:
        if not isinstance(schema.get("items"), list):
            return (), claim.derive(schema["items"]) if "items" in schema else None
        first, rest = "items", "additionalItems"
    prefix = [claim.derive(inner) for inner in schema.get(first, ())]
    return prefix, claim.derive(schema[rest]) if rest in schema else None
