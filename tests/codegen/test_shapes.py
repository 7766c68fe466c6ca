"""Shapes accept at least all instances that their schemas accept."""

from __future__ import annotations

from typing import Any

import pytest

from modules import schema
from stubwright.codegen.models.types import (
    ANY,
    ANYTHING,
    LIST,
    OBJECT,
    AnyScalar,
    Const,
    Document,
    FixedTuple,
    Items,
    Leaf,
    Object,
    Property,
    Shape,
)

STRING, NUMBER, INTEGER, NULL = AnyScalar("string"), AnyScalar("number"), AnyScalar("integer"), AnyScalar("null")
DRAFT_7 = "http://json-schema.org/draft-07/schema#"
DRAFT_4 = "http://json-schema.org/draft-04/schema#"


def shape(wire: dict[str, Any], merged: bool = False) -> Shape:
    document = Document("d", schema(wire), merged=merged)
    return document.shape(document.root)


def at(*pointer: str | int) -> Leaf:
    return Leaf("d", pointer)


@pytest.mark.parametrize(
    ("wire", "expected"),
    [
        ({}, (ANY,)),
        ({"minimum": 1, "description": "no type"}, (ANY,)),
        ({"type": "string", "format": "date-time"}, (STRING,)),
        ({"type": ["integer", "null"]}, (INTEGER, NULL)),
        ({"type": ["integer", "number"]}, (NUMBER,)),
        ({"enum": ["a", 1, True, None]}, (Const("string", "a"), Const("integer", 1), Const("boolean", True), NULL)),
        ({"type": "string", "enum": ["a", 1, None]}, (Const("string", "a"),)),
        ({"enum": [1, 2.5]}, (NUMBER,)),
        ({"enum": [1.0]}, (Const("integer", 1),)),
        ({"enum": []}, ()),
        ({"const": {"a": 1}}, (OBJECT,)),
        ({"anyOf": [{"type": "string"}, {"type": "null"}]}, (STRING, NULL)),
        ({"anyOf": [{"const": "a"}, {"const": "b"}]}, (Const("string", "a"), Const("string", "b"))),
        ({"anyOf": [{"enum": ["a"]}, {"type": "string"}]}, (Const("string", "a"), STRING)),
        ({"type": "string", "anyOf": [{"minLength": 3}, {"pattern": "x"}]}, (STRING,)),
        ({"allOf": [{"type": ["string", "integer"]}, {"type": ["integer", "null"]}]}, (INTEGER,)),
        ({"type": "number", "not": {"type": "integer"}}, (NUMBER,)),
        ({"type": "array"}, (LIST,)),
        ({"type": "array", "items": {"type": "string"}}, (Items(at("items")),)),
        ({"type": "object", "additionalProperties": {"type": "string"}}, (Object(values=at("additionalProperties")),)),
        ({"type": "object", "anyOf": [{"required": ["a"]}, {"required": ["b"]}]}, (OBJECT,)),
        ({"$ref": "#/$defs/A", "$defs": {"A": {"type": "string"}}}, (STRING,)),
        ({"$ref": "https://elsewhere.example/schema"}, (ANY,)),
        ({"$ref": "#"}, (ANY,)),
    ],
)
def test_shape(wire: dict[str, Any], expected: Shape) -> None:
    assert shape(wire) == expected


def test_keywords_without_a_type_say_nothing_of_other_types() -> None:
    made = shape({"properties": {"a": {"type": "string"}}})
    assert made[0] == Object((Property("a", at("properties", "a")),))
    assert set(made[1:]) == {LIST, STRING, NUMBER, AnyScalar("boolean"), NULL}


def test_a_tuple_needs_a_fixed_length() -> None:
    places = [{"type": "string"}, {"type": "integer"}]
    fixed = {"type": "array", "prefixItems": places, "items": False, "minItems": 2}
    assert shape(fixed) == (FixedTuple((at("prefixItems", 0), at("prefixItems", 1))),)
    (loose,) = shape({"type": "array", "prefixItems": places})
    assert isinstance(loose, Items)
    assert ANYTHING in getattr(loose.item, "parts", ())


def test_draft_7_has_tuples_in_items() -> None:
    wire = {"$schema": DRAFT_7, "type": "array", "items": [{"type": "string"}], "additionalItems": False, "minItems": 1}
    assert shape(wire) == (FixedTuple((at("items", 0),)),)


def test_draft_7_ignores_what_stands_beside_a_reference() -> None:
    wire = {"$schema": DRAFT_7, "definitions": {"A": {"type": "string"}}, "$ref": "#/definitions/A", "type": "integer"}
    assert shape(wire) == (STRING,)
    closed = {"$ref": "#/definitions/A", "items": False, "additionalProperties": False, "if": True, "then": False}
    document = Document("d", schema({**wire, "properties": {"a": closed}}))
    assert document.shape(at("properties", "a")) == (STRING,)
    assert [*document.find_children(at("properties", "a"), "additionalProperties")] == []
    later = {"$defs": {"A": {"type": ["string", "integer"]}}, "$ref": "#/$defs/A", "type": "integer"}
    assert shape(later) == (INTEGER,)


def test_keywords_of_other_dialects_are_ignored() -> None:
    assert shape({"$schema": DRAFT_4, "const": 1}) == (ANY,)
    assert shape({"$schema": DRAFT_7, "type": "array", "prefixItems": [{"type": "string"}]}) == (LIST,)


def test_an_object_is_closed_only_where_nothing_else_can_come_in() -> None:
    assert shape({"type": "object", "properties": {"a": {}}, "additionalProperties": False}) == (
        Object((Property("a", at("properties", "a")),), closed=True),
    )
    (patterned,) = shape(
        {"type": "object", "patternProperties": {"^x": {"type": "string"}}, "additionalProperties": False}
    )
    assert patterned == Object(values=at("patternProperties", "^x"))


def test_all_of_is_merged() -> None:
    (met,) = shape(
        {
            "allOf": [
                {"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"type": "object", "properties": {"b": {"type": "string"}}},
            ]
        }
    )
    assert isinstance(met, Object)
    assert [each.name for each in met.properties] == ["a", "b"]
    assert met.required == {"a"}


def test_branches_of_an_object_with_properties_become_optional_fields_of_it() -> None:
    wire = {
        "type": "object",
        "properties": {"kind": {"type": "string"}},
        "oneOf": [{"properties": {"path": {"type": "string"}}, "required": ["path"]}, {"required": ["kind"]}],
    }
    document = Document("d", schema(wire))
    (joined,) = document.shape(document.root)
    assert isinstance(joined, Object)
    assert [each.name for each in joined.properties] == ["kind", "path"]
    assert joined.required == frozenset()
    # The other branch does not constrain `path`, so it accepts any value.
    assert document.shape(joined.properties[1].expression) == (STRING, ANY)


def test_branches_of_an_object_without_properties_stay_apart() -> None:
    branches: list[dict[str, Any]] = [{"properties": {"a": {}}}, {"properties": {"b": {}}}]
    assert len(shape({"type": "object", "oneOf": branches})) == 2
    assert len(shape({"type": "object", "oneOf": branches}, merged=True)) == 1


def test_if_then_else_are_branches() -> None:
    wire = {
        "type": "object",
        "properties": {"a": {"type": "string"}},
        "if": {"properties": {"a": {"const": "x"}}},
        "then": {"properties": {"b": {"type": "integer"}}},
    }
    document = Document("d", schema(wire))
    (joined,) = document.shape(document.root)
    assert isinstance(joined, Object)
    assert [document.shape(each.expression) for each in joined.properties] == [(STRING,), (INTEGER, ANY)]


def test_dynamic_references_are_followed_where_they_can_lead_to_one_place_only() -> None:
    tree = {"$dynamicAnchor": "node", "type": "object", "properties": {"next": {"$dynamicRef": "#node"}}}
    document = Document("d", schema(tree))
    assert document.shape(at("properties", "next")) == document.shape(document.root)
    two = {**tree, "$defs": {"other": {"$id": "https://x.example/", "$dynamicAnchor": "node"}}}
    document = Document("d", schema(two))
    assert document.shape(at("properties", "next")) == (ANY,)


def test_shapes_of_schemas_that_fold_into_themselves_are_bounded() -> None:
    wire = {
        "$defs": {
            "A": {"properties": {"a": {"$ref": "#/$defs/B"}}, "anyOf": [{"$ref": "#/$defs/B"}, {"$ref": "#"}]},
            "B": {"properties": {"a": {"$ref": "#/$defs/A"}}, "oneOf": [{"$ref": "#/$defs/A"}, {"type": "object"}]},
        },
        "allOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/B"}],
    }
    assert shape(wire)
