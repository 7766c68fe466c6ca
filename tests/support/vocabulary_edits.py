"""Random edits to any JSON Schema, one kind for each keyword in its dialect, all from a seed.

`edited` sets, changes or removes keywords anywhere in a schema. The dialect lists the keywords: `MAKERS` makes the
values of each assertion keyword, and `SILENT` has the others.
"""

from __future__ import annotations

import copy
import random
from collections.abc import Callable, Mapping
from typing import Any

import schema_edits
from stubwright.jsonschema import dialects

Json = Any
Make = Callable[[schema_edits.Maker, Mapping[str, Json]], Json]

PATTERNS = (
    *("^[A-Z]{2}-[0-9]+$", "^[a-z][a-z0-9-]*$", r"^\d{4}-\d{2}$", r"^\S+@\S+$", "^(draft|live)$", "[A-Z]", r"^\w{3,}$"),
    *("^https?://", r"\.json$", "^[0-9a-f]{8}$", "^.{1,3}$", "^#/", r"^\+?[1-9]\d{6,14}$", "^(?!x)", "^$"),
)
FORMATS = (
    "date",
    "date-time",
    "time",
    "duration",
    "email",
    "hostname",
    "ipv4",
    "ipv6",
    "uri",
    "uuid",
    "regex",
    "x-own",
)
TYPES = ("string", "integer", "number", "boolean", "null", "array", "object")
VALUES: tuple[Json, ...] = ("red", "", "AB-1", 0, 1, 1.5, -3, None, True, False, [], [1], {}, {"a": 1})


def _bound(*values: float) -> Make:
    return lambda maker, _: maker.chance.choice(values)


def _schema(maker: schema_edits.Maker, _: Mapping[str, Json]) -> Json:
    return maker.schema(3)


def _schemas(maker: schema_edits.Maker, _: Mapping[str, Json]) -> Json:
    return [maker.schema(3) for _ in range(maker.chance.randint(1, 2))]


def _named(maker: schema_edits.Maker, here: Mapping[str, Json]) -> Json:
    return {name: maker.schema(3) for name in _names(maker, here)}


def _names(maker: schema_edits.Maker, here: Mapping[str, Json]) -> list[str]:
    known = [*dict.fromkeys([*(here.get("properties") or ()), *schema_edits.NAMES])]
    return maker.chance.sample(known, maker.chance.randint(1, 2))


def _any_type(maker: schema_edits.Maker, _: Mapping[str, Json]) -> Json:
    return maker.chance.choice((maker.chance.choice(TYPES), maker.chance.sample(TYPES, 2)))


MAKERS: Mapping[str, Make] = {
    "type": _any_type,
    "enum": lambda maker, _: maker.chance.sample(VALUES, maker.chance.randint(1, 4)),
    "const": lambda maker, _: maker.chance.choice(VALUES),
    **dict.fromkeys(
        ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"), _bound(-10, -0.5, 0, 1, 2.5, 10, 999)
    ),
    "multipleOf": _bound(1, 2, 3, 5, 0.1, 0.01, 0.5, 1.5, 100),
    **dict.fromkeys(("minLength", "minItems", "minProperties"), _bound(0, 1, 2, 3, 7)),
    **dict.fromkeys(("maxLength", "maxItems", "maxProperties"), _bound(0, 1, 2, 5, 10, 64)),
    **dict.fromkeys(("minContains", "maxContains"), _bound(0, 1, 2, 3)),
    "uniqueItems": lambda maker, _: maker.chance.choice((True, False)),
    "pattern": lambda maker, _: maker.chance.choice(PATTERNS),
    "format": lambda maker, _: maker.chance.choice(FORMATS),
    "required": _names,
    "dependentRequired": lambda maker, here: {_names(maker, here)[0]: _names(maker, here)},
    **dict.fromkeys(("properties", "dependentSchemas"), _named),
    "dependencies": lambda maker, here: {
        _names(maker, here)[0]: maker.chance.choice((_names(maker, here), maker.object(3)))
    },
    "patternProperties": lambda maker, _: {maker.chance.choice(("^x-", *PATTERNS)): maker.schema(3)},
    "propertyNames": lambda maker, _: maker.chance.choice(
        ({"maxLength": 3}, {"pattern": "^[a-z]"}, {"enum": ["a", "b"]})
    ),
    **dict.fromkeys(
        ("additionalProperties", "unevaluatedProperties", "additionalItems", "unevaluatedItems"),
        lambda maker, _: maker.chance.choice((True, False, maker.schema(3))),
    ),
    **dict.fromkeys(("items", "contains", "not", "if", "then", "else"), _schema),
    **dict.fromkeys(("prefixItems", "allOf", "anyOf", "oneOf"), _schemas),
    "$ref": lambda maker, _: maker.chance.choice(("#", *(f"#/$defs/{name}" for name in maker.defs))),
}
"""The function that makes the value of each assertion keyword."""

SILENT = frozenset(
    {"$schema", "$id", "id", "$anchor", "$dynamicAnchor", "$recursiveAnchor", "$dynamicRef", "$recursiveRef"}
    | {"$vocabulary", "$comment", "$defs", "definitions", "title", "description", "default", "examples", "deprecated"}
    | {"readOnly", "writeOnly", "contentEncoding", "contentMediaType", "contentSchema"}
)
"""Keywords that do not constrain instances, or only affect other keywords."""

_NUMBERS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "type", "enum", "const")
FITTING: Mapping[str, tuple[str, ...]] = {
    "string": ("pattern", "format", "minLength", "maxLength", "enum", "const", "type"),
    "number": _NUMBERS,
    "integer": _NUMBERS,
    "array": ("items", "prefixItems", "minItems", "maxItems", "uniqueItems", "contains", "type"),
    "object": ("properties", "required", "additionalProperties", "minProperties", "maxProperties", "dependentRequired"),
}
"""The keywords that constrain a type."""


def _set(here: dict[str, Json], maker: schema_edits.Maker, keywords: list[str]) -> None:
    """Set one keyword. In half the cases, it constrains the type."""
    fitting = [word for word in FITTING.get(str(here.get("type")), ()) if word in keywords]
    keyword = maker.chance.choice(fitting if fitting and maker.chance.random() < 0.6 else keywords)
    made = MAKERS[keyword](maker, here)
    if keyword == "required" and isinstance(here.get(keyword), list):
        made = [*dict.fromkeys([*here[keyword], *made])]
    elif keyword in ("properties", "patternProperties") and isinstance(here.get(keyword), dict):
        made = {**here[keyword], **made}
    here[keyword] = made


def _move(here: dict[str, Json], maker: schema_edits.Maker) -> None:
    """Change a bound, or a list of values or names."""
    moved = [word for word in here if word in MAKERS and _is_movable(here[word])]
    if not moved:
        return
    keyword = maker.chance.choice(moved)
    value = here[keyword]
    if isinstance(value, list):
        here[keyword] = value[1:] if len(value) > 1 and maker.chance.random() < 0.5 else [*value, "zzz"]
    else:
        here[keyword] = max(0, value + maker.chance.choice((-1, 1, 5))) or 1


def _is_movable(value: Json) -> bool:
    if isinstance(value, list):
        return all(isinstance(inner, str) for inner in value) and "zzz" not in value and not {*value} <= {*TYPES}
    return isinstance(value, int) and not isinstance(value, bool)


def _rename(here: dict[str, Json], maker: schema_edits.Maker) -> None:
    """Remove or rename a property."""
    properties = here.get("properties")
    if not isinstance(properties, dict) or not properties:
        return
    name = maker.chance.choice([*properties])
    gone = properties.pop(name)
    required = here.get("required")
    was_needed = isinstance(required, list) and name in required
    if was_needed:
        here["required"] = [other for other in required or () if other != name]
    if maker.chance.random() < 0.5:
        properties["renamed"] = gone
        if was_needed:
            here["required"].append("renamed")


def _need(here: dict[str, Json], maker: schema_edits.Maker) -> None:
    """Require a property, existing or new."""
    properties = here.get("properties")
    if not isinstance(properties, dict):
        return
    name = maker.chance.choice((*properties, "added"))
    properties.setdefault(name, maker.simple())
    here["required"] = [*dict.fromkeys([*here.get("required", []), name])]


def tighten(chance: random.Random, schema: Json) -> None:
    """Change a schema so that valid values are rarer: patterns, steps, counts, and more required properties."""
    maker = schema_edits.Maker(chance)
    for here in schema_edits.places(schema, positive=True):
        properties = here.get("properties")
        if str(here.get("type")) in STRICT and chance.random() < 0.7:
            _set(here, maker, STRICT[here["type"]])
        if isinstance(properties, dict) and properties and chance.random() < 0.7:
            here["required"] = [*properties][:6]


STRICT: Mapping[str, list[str]] = {
    "string": ["pattern", "minLength", "format"],
    "number": ["multipleOf", "maximum", "exclusiveMinimum"],
    "integer": ["multipleOf", "maximum", "exclusiveMinimum"],
    "array": ["minItems", "uniqueItems", "contains"],
}


def edited(chance: random.Random, old: Json) -> Json:
    """Return the schema with one to three edits."""
    new = copy.deepcopy(old)
    dialect = dialects.find_dialect(new) or dialects.DRAFT_2020_12
    maker = schema_edits.Maker(chance)
    maker.defs = dict(new.get("$defs") or {})
    # `dependencies` is optional since 2019-09 (Core, appendix C of 2020-12), so validators differ.
    left_out = {"items"} if dialect.reference_hides_siblings else {"dependencies"}
    keywords = sorted(dialect.keywords & MAKERS.keys() - left_out)
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        here = chance.choice(schema_edits.places(new, positive=False))
        match chance.choice(("set", "set", "set", "move", "gone", "rename", "need")):
            case "set":
                _set(here, maker, keywords)
            case "move":
                _move(here, maker)
            case "gone" if gone := [word for word in here if word in MAKERS and word not in ("type", "items")]:
                del here[chance.choice(gone)]
            case "rename":
                _rename(here, maker)
            case _:
                _need(here, maker)
    return new
