"""Changes of schemas that are decided, where the comparison once could not say whether they break anything."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from stubwright import ir
from stubwright.diagnostics import Place
from stubwright.diff.changes import Change, find_worst_impact
from stubwright.diff.kinds.schemas import SchemaComparison
from stubwright.jsonschema import dialects

Json = Any
DIRECTIONS: tuple[Literal["input", "output"], ...] = ("input", "output")
ITSELF = {"$ref": "#"}


def compare(old: Json, new: Json, direction: Literal["input", "output"]) -> list[Change]:
    place = Place("manifest.json", ())
    before, after = (ir.Schema(schema, dialects.DRAFT_2020_12.uri, place) for schema in (old, new))
    return SchemaComparison("tool `t`", direction, before, after, "annotate", "annotate", {}).compare()


def decide(old: Json, new: Json, direction: Literal["input", "output"]) -> str | None:
    """The worst impact of the changes between two schemas."""
    return find_worst_impact(compare(old, new, direction))


def recursive(**properties: Json) -> Json:
    """An object whose other properties are objects like itself."""
    return {"type": "object", "additionalProperties": ITSELF, "properties": properties}


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (
            {"type": "array", "items": {"type": "object"}},
            {"type": "array", "items": {"anyOf": [{"type": "object"}, {"type": "null"}]}},
        ),
        ({"type": "integer"}, {"type": "number"}),
        ({"type": "array", "items": {"enum": ["a"]}}, {"type": "array", "items": {"enum": ["a", "b"]}}),
        ({"type": "object", "required": ["a"]}, {"type": "object"}),
    ],
    ids=["null", "number", "enum", "required"],
)
def test_a_break_beside_a_reference_to_the_root_is_shown(old: Json, new: Json) -> None:
    assert decide(recursive(x=old), recursive(x=new), "output") == "breaking"
    assert decide(recursive(x=new), recursive(x=old), "input") == "breaking"
    assert decide(recursive(x=old), recursive(x=new), "input") == "compatible"


@pytest.mark.parametrize(
    ("old", "new"),
    [
        (None, "^(?!no)"),
        ("^a", "^(?!ab)a"),
        ("^[a-z]+$", "^(?!con$|aux$)[a-z]+$"),
        ("^[a-z]+$", "^[a-z]+(?<!x)$"),
        ("^[a-z]+$", "^(?=a)[a-z]+$"),
        ("^.*$", "^(?!.*secret).*$"),
        ("^[a-z]{5,}$", "^(?!no)[a-z]{5,}$"),
    ],
)
def test_what_a_pattern_looks_at_shows_a_break(old: str | None, new: str) -> None:
    schemas = [recursive() | {"properties": {"s": {"type": "string", **rule}}} for rule in _rules(old, new)]
    assert decide(schemas[0], schemas[1], "input") == "breaking"
    assert decide(schemas[1], schemas[0], "output") == "breaking"


def _rules(*texts: str | None) -> list[Json]:
    return [{} if text is None else {"pattern": text} for text in texts]


def test_a_look_ahead_that_never_fails_breaks_nothing() -> None:
    """What starts with `a` does not start with `no`: no example exists, and none is shown."""
    old, new = ({"type": "object", "properties": {"s": rule}} for rule in _rules("^a", "^(?!no)a"))
    assert decide(old, new, "input") != "breaking"
    assert decide(old, new, "output") != "breaking"


OBJECT = {"type": "object", "properties": {"a": {"type": "array"}}, "additionalProperties": {"type": "string"}}


@pytest.mark.parametrize(
    "more",
    [
        {"not": {"required": ["a"], "properties": {"a": {"enum": [[1], [{"b": 1}]]}}}},
        {"not": {"enum": [{"a": [1]}]}},
        {"if": {"not": {"const": {"a": [1]}}}, "then": {"minProperties": 1}, "else": {"maxProperties": 7}},
        {"oneOf": [{"const": {"a": [1]}}, {"not": {"enum": [{"b": ""}, {"a": [2]}]}}]},
        {"propertyNames": {"pattern": "^(?!no)"}},
    ],
    ids=["not", "enum", "if", "oneOf", "propertyNames"],
)
def test_one_keyword_more_only_narrows(more: Json) -> None:
    for place in ("items", "additionalProperties"):
        old, new = ({"type": "object", "properties": {"x": {place: schema}}} for schema in (OBJECT, OBJECT | more))
        assert decide(old, new, "output") == "compatible"
        assert decide(new, old, "input") == "compatible"
        assert decide(old, new, "input") != "compatible"


@pytest.mark.parametrize(
    ("schema", "more"),
    [
        ({"additionalProperties": False}, {"properties": {"a": {}}}),
        ({"additionalProperties": False}, {"patternProperties": {"^a": {}}}),
        ({"items": False}, {"prefixItems": [{}]}),
        ({"contains": {"const": 1}}, {"minContains": 0}),
        ({"unevaluatedProperties": False}, {"anyOf": [{"properties": {"a": {}}}, {"required": ["b"]}]}),
    ],
)
def test_a_keyword_more_that_its_siblings_see_may_widen(schema: Json, more: Json) -> None:
    old, new = ({"type": "object", "properties": {"x": side}} for side in (schema, schema | more))
    assert decide(old, new, "output") == "breaking"
    assert decide(new, old, "input") == "breaking"


@pytest.mark.parametrize(
    ("schema", "refused"),
    [
        ({"type": "boolean"}, {"enum": [[1]]}),
        ({"type": "boolean"}, {"const": {"a": 1}}),
        ({"type": ["boolean", "null"]}, {"enum": [[1], {}, "a"]}),
        ({"type": "array"}, {"enum": [{"a": [1]}, True]}),
    ],
)
def test_values_of_other_types_are_refused_anyway(schema: Json, refused: Json) -> None:
    old, new = ({"type": "object", "properties": {"x": side}} for side in (schema, schema | {"not": refused}))
    for direction in DIRECTIONS:
        assert decide(old, new, direction) == decide(new, old, direction) == "compatible"


@pytest.mark.parametrize(
    ("schema", "refused"),
    [
        ({"type": "boolean"}, {"enum": [[1], True]}),
        ({"type": ["boolean", "array"]}, {"enum": [[1]]}),
        ({"type": "integer"}, {"const": 1.0}),
        ({"type": "boolean"}, {"enum": [True], "const": True}),
        ({"type": "boolean"}, {"type": "boolean"}),
    ],
)
def test_values_of_its_types_are_refused_now(schema: Json, refused: Json) -> None:
    old, new = ({"type": "object", "properties": {"x": side}} for side in (schema, schema | {"not": refused}))
    assert decide(old, new, "input") == "breaking"
    assert decide(new, old, "output") == "breaking"


def test_what_a_reference_leads_to_is_not_idle() -> None:
    old, new = (
        {
            "type": "object",
            "properties": {
                "x": {"type": "boolean", "not": {"enum": [[number]]}},
                "y": {"$ref": "#/properties/x/not"},
            },
        }
        for number in (1, 2)
    )
    assert decide(old, new, "input") != "compatible"
    assert decide(old, new, "output") != "compatible"


def test_a_keyword_that_a_dialect_does_not_know_refuses_everything() -> None:
    draft = dialects.DRAFT_4.uri
    old, new = (
        {"$schema": draft, "type": "object", "properties": {"x": {"type": "boolean", **more}}}
        for more in ({}, {"not": {"const": [1]}})
    )
    assert decide(old, new, "input") == "breaking"
