"""Negates schemas: each violation is a group of schemas that an invalid instance matches.

A keyword's violations need not be complete (JSON Schema 2020-12, Core 10 and 11, Validation 6).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from random import Random
from typing import TYPE_CHECKING, Any, Final, TypeAlias

from stubwright.jsonschema import patterns
from stubwright.jsonschema.instances.parts import AT, EACH, NUMBER_KEYWORDS, TEXT_KEYWORDS, is_valid
from stubwright.jsonschema.instances.scalars import list_texts
from stubwright.jsonschema.metaschema import TYPES
from stubwright.jsonschema.patterns import UnreadableError
from stubwright.jsonschema.references import KEYWORDS

if TYPE_CHECKING:
    from stubwright.jsonschema.instances.parts import Subschema

Group: TypeAlias = tuple["Subschema", ...]

_NAMES: Final = 8
"""The maximum number of names per rule."""

_PAIRS: Final = 10
"""The maximum number of pairs of `oneOf` alternatives."""


def make_invalid(part: Subschema, names: Sequence[str]) -> Iterator[Group]:
    """Yield a schema's violations. `names` are property names to try."""
    schema = part.schema
    if schema is False:
        yield ()
    if not isinstance(schema, dict):
        return
    dialect = part.validator.dialect
    if dialect.reference_hides_siblings and "$ref" in schema:
        schema = {"$ref": schema["$ref"]}
    for keyword, value in schema.items():
        if keyword in dialect.keywords and keyword in _VIOLATIONS:
            yield from _VIOLATIONS[keyword](_Rule(part, keyword, value, names))


@dataclass(frozen=True, slots=True)
class _Rule:
    part: Subschema
    keyword: str
    value: Any
    names: Sequence[str]


def _fail_reference(rule: _Rule) -> Iterator[Group]:
    target = rule.part.follow(rule.value)
    if target is not None:
        yield (rule.part.negate(target.schema),)


def _fail_type(rule: _Rule) -> Iterator[Group]:
    allowed = {rule.value} if isinstance(rule.value, str) else set(rule.value)
    others = [name for name in TYPES if name not in allowed and not (name == "integer" and "number" in allowed)]
    if others:
        yield (rule.part.with_settled_schema({"type": others, "not": {"type": [*allowed]}}),)


def _fail_values(rule: _Rule) -> Iterator[Group]:
    yield (rule.part.with_settled_schema({"not": {rule.keyword: rule.value}}),)


def _fail_text(rule: _Rule) -> Iterator[Group]:
    yield (rule.part.with_settled_schema({"type": "string", "not": {rule.keyword: rule.value}}),)


def _fail_number(rule: _Rule) -> Iterator[Group]:
    if isinstance(rule.value, bool):
        return
    bound = {rule.keyword: rule.value}
    exclusive = f"exclusive{rule.keyword.capitalize()}"
    if rule.part.get(exclusive) is True:  # draft-04
        bound[exclusive] = True
    yield (rule.part.with_settled_schema({"type": "number", "not": bound}),)


def _fail_minimum_size(rule: _Rule) -> Iterator[Group]:
    if rule.value > 0:
        yield (
            rule.part.with_settled_schema(
                {"type": _COUNTED[rule.keyword], rule.keyword.replace("min", "max"): rule.value - 1}
            ),
        )


def _fail_maximum_size(rule: _Rule) -> Iterator[Group]:
    yield (
        rule.part.with_settled_schema(
            {"type": _COUNTED[rule.keyword], rule.keyword.replace("max", "min"): rule.value + 1}
        ),
    )


def _fail_unique(rule: _Rule) -> Iterator[Group]:
    if rule.value is True:
        yield (rule.part.with_settled_schema({"type": "array", "minItems": 2}),)


def _fail_required(rule: _Rule) -> Iterator[Group]:
    for name in rule.value if isinstance(rule.value, list) else ():
        yield (rule.part.with_schema({"type": "object", "properties": {name: False}}),)


def _fail_properties(rule: _Rule) -> Iterator[Group]:
    for name, schema in rule.value.items():
        yield _require_invalid_property(rule.part, name, schema)


def _fail_patterns(rule: _Rule) -> Iterator[Group]:
    for pattern, schema in rule.value.items():
        for name in make_names(pattern, rule.part, rule.names):
            yield _require_invalid_property(rule.part, name, schema)


def _fail_additional(rule: _Rule) -> Iterator[Group]:
    for name in rule.names:
        if not is_named(rule.part, name):
            yield _require_invalid_property(rule.part, name, rule.value)


def _fail_names(rule: _Rule) -> Iterator[Group]:
    texts = [*rule.names, *list_texts([rule.value] if isinstance(rule.value, dict) else [])]
    refused = (name for name in dict.fromkeys(texts) if not is_valid(rule.part, rule.value, name))
    for name in islice(refused, _NAMES):
        yield (rule.part.with_schema({"type": "object", "required": [name]}),)


def _fail_items(rule: _Rule) -> Iterator[Group]:
    places = rule.value if isinstance(rule.value, list) else rule.part.get("prefixItems")
    if isinstance(rule.value, list):
        for index, schema in enumerate(rule.value):
            yield _require_invalid_item(rule.part, index, schema)
    elif isinstance(rule.value, dict | bool):
        behind = rule.part.get("items") if rule.keyword == "additionalItems" else places
        yield _require_invalid_item(rule.part, len(behind) if isinstance(behind, list) else 0, rule.value)


def _fail_contains(rule: _Rule) -> Iterator[Group]:
    least, most = rule.part.get("minContains", 1), rule.part.get("maxContains")
    if least > 0:
        yield (rule.part.with_schema({"type": "array", EACH: rule.part.negate(rule.value).schema}),)
    if least > 1:
        yield (
            rule.part.with_schema(
                {"type": "array", "contains": rule.value, "minContains": 1, "maxContains": least - 1}
            ),
        )
    if most is not None:
        yield (rule.part.with_schema({"type": "array", "contains": rule.value, "minContains": most + 1}),)


def _fail_dependent(rule: _Rule) -> Iterator[Group]:
    for name, dependent in rule.value.items():
        having = rule.part.with_schema({"type": "object", "required": [name]})
        if isinstance(dependent, list):
            for other in dependent:
                yield having, rule.part.with_schema({"properties": {other: False}})
        else:
            yield having, rule.part.negate(dependent)


def _fail_all(rule: _Rule) -> Iterator[Group]:
    for schema in rule.value:
        yield (rule.part.negate(schema),)


def _fail_any(rule: _Rule) -> Iterator[Group]:
    yield tuple(rule.part.negate(schema) for schema in rule.value)


def _fail_one(rule: _Rule) -> Iterator[Group]:
    yield from _fail_any(rule)
    pairs = [
        (rule.part.with_schema(left), rule.part.with_schema(right))
        for at, left in enumerate(rule.value)
        for right in rule.value[at + 1 :]
    ]
    yield from pairs[:_PAIRS]


def _fail_not(rule: _Rule) -> Iterator[Group]:
    yield (rule.part.with_schema(rule.value),)


def _fail_condition(rule: _Rule) -> Iterator[Group]:
    yield rule.part.with_schema(rule.value), rule.part.negate(rule.part.get("then", True))
    yield rule.part.negate(rule.value), rule.part.negate(rule.part.get("else", True))


def _require_invalid_property(part: Subschema, name: str, schema: Any) -> Group:
    return (part.with_schema({"type": "object", "required": [name], "properties": {name: part.negate(schema).schema}}),)


def _require_invalid_item(part: Subschema, index: int, schema: Any) -> Group:
    return (part.with_schema({"type": "array", "minItems": index + 1, AT: {index: part.negate(schema).schema}}),)


def is_named(part: Subschema, name: str) -> bool:
    """Return whether a name is in a schema's `properties` or matches its `patternProperties`."""
    matched: Iterable[str] = part.get("patternProperties") or ()
    return name in (part.get("properties") or ()) or any(matches(part, pattern, name) for pattern in matched)


def matches(part: Subschema, pattern: str, name: str) -> bool:
    """Return whether a pattern matches a name in the schema's dialect."""
    return is_valid(part, {"pattern": pattern}, name)


def make_names(pattern: str, part: Subschema, names: Sequence[str]) -> list[str]:
    """Return property names that match a pattern, taken from `names` or generated."""
    chance = Random(0)  # noqa: S311
    generated: list[str] = []
    with suppress(UnreadableError):
        generated = [patterns.make_text(pattern, chance) for _ in range(2)]
    generated += [pattern.strip("^$"), f"{pattern.strip('^$')}a"]
    return [name for name in dict.fromkeys((*names, *generated)) if matches(part, pattern, name)][:_NAMES]


_COUNTED: Final = {"minItems": "array", "maxItems": "array", "minProperties": "object", "maxProperties": "object"}
_VIOLATIONS: Final[Mapping[str, Callable[[_Rule], Iterator[Group]]]] = {
    **dict.fromkeys(KEYWORDS, _fail_reference),
    "type": _fail_type,
    **dict.fromkeys(("enum", "const"), _fail_values),
    **dict.fromkeys(sorted(TEXT_KEYWORDS), _fail_text),
    **dict.fromkeys(sorted(NUMBER_KEYWORDS), _fail_number),
    **dict.fromkeys(("minItems", "minProperties"), _fail_minimum_size),
    **dict.fromkeys(("maxItems", "maxProperties"), _fail_maximum_size),
    "uniqueItems": _fail_unique,
    "required": _fail_required,
    "properties": _fail_properties,
    "patternProperties": _fail_patterns,
    **dict.fromkeys(("additionalProperties", "unevaluatedProperties"), _fail_additional),
    "propertyNames": _fail_names,
    **dict.fromkeys(("prefixItems", "items", "additionalItems", "unevaluatedItems"), _fail_items),
    "contains": _fail_contains,
    **dict.fromkeys(("dependentRequired", "dependentSchemas", "dependencies"), _fail_dependent),
    "allOf": _fail_all,
    "anyOf": _fail_any,
    "oneOf": _fail_one,
    "not": _fail_not,
    "if": _fail_condition,
}
