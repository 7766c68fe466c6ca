"""Selections of a response, and the derived schema: a selection of a valid response is valid."""

from __future__ import annotations

import json
from typing import Any

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from amounts import choose
from instances import valid
from stubwright.jsonschema.selection import SchemaSelector
from stubwright_runtime.http.selections import get_value, make_tree, parse_steps, select

Json = Any

NAMES = ["a", "b", "c", "*", "x/y"]
SCALARS: list[Json] = [
    {"type": "string"},
    {"type": "integer", "minimum": 0},
    {"type": ["string", "null"]},
    {"const": {"a": 1, "b": [2]}},
    {"enum": [1, "two", {"a": 1}, [True], [1]]},
    {"$ref": "#/$defs/Node"},
    {"$ref": "#/$defs/Leaf"},
    {"$ref": "#"},
    True,
]
DEFS: Json = {
    "Leaf": {"properties": {"a": {"type": "integer"}}, "required": ["a"], "additionalProperties": False},
    "Node": {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"items": {"$ref": "#/$defs/Node"}, "maxItems": 2}},
        "required": ["a"],
    },
    "Circle": {"anyOf": [{"$ref": "#/$defs/Circle"}, {"$ref": "#/$defs/Leaf"}]},
}  # fmt: skip


def objects(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    names = st.sampled_from(NAMES)
    keywords = {
        "properties": st.dictionaries(names, inner, max_size=3),
        "required": st.lists(names, unique=True, max_size=2),
        "additionalProperties": inner | st.booleans(),
        "patternProperties": st.dictionaries(st.sampled_from(["^a", "b$", "."]), inner, max_size=1),
        "minProperties": st.integers(0, 2),
        "maxProperties": st.integers(2, 4),
        "dependentRequired": st.dictionaries(names, st.lists(names, unique=True, max_size=1), max_size=1),
        "dependentSchemas": st.dictionaries(names, inner, max_size=1),
        "propertyNames": st.just({"maxLength": 3}),
        "unevaluatedProperties": st.just(False),
    }
    return st.fixed_dictionaries({"type": st.just("object")}, optional=keywords)


def arrays(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    keywords = {
        "items": inner,
        "prefixItems": st.lists(inner, min_size=1, max_size=2),
        "minItems": st.integers(0, 2),
        "maxItems": st.integers(2, 3),
        "contains": inner,
        "uniqueItems": st.booleans(),
    }
    return st.fixed_dictionaries({"type": st.just("array")}, optional=keywords)


def choices(inner: st.SearchStrategy[Json]) -> st.SearchStrategy[Json]:
    several = st.lists(inner, min_size=1, max_size=2)
    keywords = {"allOf": several, "anyOf": several, "oneOf": several, "if": inner, "then": inner, "else": inner}
    return st.fixed_dictionaries({}, optional=keywords)


SCHEMAS = st.recursive(
    st.sampled_from(SCALARS), lambda inner: objects(inner) | arrays(inner) | choices(inner), max_leaves=6
)
POINTERS = st.lists(
    st.lists(st.sampled_from(["a", "b", "c", "*", "~2", "x~1y", "0", "1"]), min_size=1, max_size=3).map(
        lambda steps: "".join(f"/{step}" for step in steps)
    ),
    min_size=1,
    max_size=3,
)


@settings(max_examples=choose("STUBWRIGHT_WHOLE_CORPUS", 60, 400, 400), suppress_health_check=list(HealthCheck))
@given(SCHEMAS, POINTERS, st.integers(0, 1000))
def test_what_is_selected_of_a_valid_value_is_valid(schema: Json, pointers: list[str], seed: int) -> None:
    root = {"allOf": [schema], "$defs": DEFS} if isinstance(schema, bool) else {**schema, "$defs": DEFS}
    tree = make_tree(pointers)
    derived = SchemaSelector(root)
    made = derived.finish(derived.keep(root, tree))
    validator = jsonschema_rs.validator_for(made)
    for value in valid(root, str(seed), 8):
        kept = select(value, tree)
        assert validator.is_valid(kept), (root, pointers, value, kept, made)
    assert validator.is_valid(select(None, tree)) or not jsonschema_rs.validator_for(root).is_valid(None)


PET = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "tag": {"type": "string"}, "owner": {"$ref": "#/$defs/Owner"}},
    "required": ["id", "tag"],
    "additionalProperties": False,
}
OWNER = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "pets": {"type": "array", "items": {"$ref": "#/$defs/Pet"}}},
}
LIST: Json = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"$ref": "#/$defs/Pet"}}, "next": {"type": "string"}},
    "required": ["items", "next"],
    "$defs": {"Pet": PET, "Owner": OWNER},
}


@pytest.mark.parametrize(
    ("schema", "pointers", "expected"),
    [
        (
            LIST,
            ["/items/*/id", "/next"],
            {
                "type": "object",
                "properties": {
                    "items": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {"id": {"type": "integer"}},
                            "required": ["id"],
                            "additionalProperties": False,
                        },
                    },
                    "next": {"type": "string"},
                },
                "required": ["items", "next"],
            },
        ),
        (
            LIST,
            ["/items/*/owner/name"],
            {
                "type": "object",
                "properties": {
                    "items": {
                        "type": "array",
                        "items": {
                            "type": "object",
                            "properties": {"owner": {"type": "object", "properties": {"name": {"type": "string"}}}},
                            "additionalProperties": False,
                        },
                    }
                },
                "required": ["items"],
            },
        ),
        (LIST, ["/items/*/owner"], "whole"),
        (
            {"oneOf": [PET | {"properties": {"id": {"type": "integer"}, "tag": {"type": "string"}}}, {"type": "null"}]},
            ["/id"],
            {
                "anyOf": [
                    {
                        "type": "object",
                        "properties": {"id": {"type": "integer"}},
                        "required": ["id"],
                        "additionalProperties": False,
                    },
                    {"type": "null"},
                ]
            },
        ),
        (
            {"type": "object", "additionalProperties": {"type": "object", "properties": {"n": {"type": "number"}}}},
            ["/*/n"],
            {"type": "object", "additionalProperties": {"type": "object", "properties": {"n": {"type": "number"}}}},
        ),
        (
            {"type": "object", "additionalProperties": {"type": "object", "properties": {"n": {}, "m": {}}}},
            ["/one/n"],
            {"type": "object", "properties": {"one": {"type": "object", "properties": {"n": {}}}}},
        ),
        (
            {"type": "array", "uniqueItems": True, "minItems": 1, "maxItems": 9, "maxContains": 1, "contains": PET},
            ["/*/tag"],
            {
                "type": "array",
                "minItems": 1,
                "maxItems": 9,
                "contains": {
                    "type": "object",
                    "properties": {"tag": {"type": "string"}},
                    "required": ["tag"],
                    "additionalProperties": False,
                },
            },
        ),
        (
            {"type": "array", "prefixItems": [{"type": "integer"}, PET | {"properties": {"id": {}, "tag": {}}}]},
            ["/*/id"],
            {
                "type": "array",
                "prefixItems": [
                    {"type": "integer"},
                    {"type": "object", "properties": {"id": {}}, "required": ["id"], "additionalProperties": False},
                ],
            },
        ),
    ],
)
def test_a_schema_is_derived_as_exactly_as_it_can_be(schema: Json, pointers: list[str], expected: Json) -> None:
    derived = SchemaSelector(schema)
    made = derived.finish(derived.keep(schema, make_tree(pointers)))
    if expected == "whole":  # a completely selected value keeps its references and their targets
        items = made["properties"]["items"]["items"]
        assert items["properties"] == {"owner": {"$ref": "#/$defs/Owner"}}
        assert made["$defs"] == {"Owner": OWNER, "Pet": PET}
    else:
        assert made == expected


def test_steps() -> None:
    assert parse_steps("/a~1b/~0/*/~2/") == ["a/b", "~", None, "*", ""]
    assert parse_steps("") == []
    value = {"items": [{"id": 1, "x": 2}, {"id": 3, "*": 4}], "n": None, "*": {"id": 5}}
    assert select(value, make_tree(["/items/*/id"])) == {"items": [{"id": 1}, {"id": 3}]}
    assert select(value, make_tree(["/items/1"])) == {"items": [{"id": 3, "*": 4}]}
    assert select(value, make_tree(["/~2/id", "/n/deeper"])) == {"n": None, "*": {"id": 5}}
    assert select(value, make_tree(["/*/id"])) == {"items": [], "n": None, "*": {"id": 5}}
    assert select(value, make_tree([""])) == value
    assert get_value(value, "/items/-/id") == 3
    assert get_value(value, "/items/7/id") is None
    assert json.dumps(select([1, "a"], make_tree(["/*/id"]))) == '[1, "a"]'
