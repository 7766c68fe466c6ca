"""Proofs by cases: soundness, completeness, implication between patterns, and termination."""

from __future__ import annotations

import random
from typing import Any, Final

import pytest

import schema_edits
import vocabulary_edits
from amounts import choose
from stubwright.diff.subsumption import patterns, refutation
from stubwright.diff.subsumption.annotations import strip_annotations
from stubwright.diff.subsumption.proof import SchemaValidator
from stubwright.jsonschema import dialects

Json = Any

PAIRS: Final = choose("STUBWRIGHT_WHOLE_DIFF", 30, 300, 10_000)
DRAFT_4: Final = {"$schema": dialects.DRAFT_4.uri}
DRAFT_7: Final = {"$schema": dialects.DRAFT_7.uri}


def is_proved(narrow: Json, wide: Json) -> bool:
    """Return whether it is proved by cases alone that `wide` accepts what `narrow` accepts."""
    judge = SchemaValidator(narrow)
    documents = [strip_annotations(schema, judge.dialect) for schema in (narrow, wide)]
    return refutation.is_refuted(documents[0], documents[1], judge.dialect, judge.formats)


def node(name: str, **more: Json) -> Json:
    """A tree below the definition of this name."""
    body = {"type": "object", "properties": {"k": {"type": "array", "items": {"$ref": f"#/$defs/{name}"}}, **more}}
    return {"properties": {"n": {"$ref": f"#/$defs/{name}"}}, "$defs": {name: body}}


def written_out(name: str) -> Json:
    """Return the same tree with the first step below a node expanded."""
    tree = node(name)
    tree["$defs"][name]["properties"]["k"]["items"] = node(name)["$defs"][name]
    return tree


STRING: Final = {"type": "string"}
FOO: Final = {"type": "object", "properties": {"foo": STRING, "bar": STRING}}
EQUAL: Final = [
    ({"type": "boolean"}, {"enum": [False, True]}),
    ({"const": 1}, {"const": 1.0}),
    ({"type": "integer", "exclusiveMinimum": 0}, {"type": "integer", "minimum": 1}),
    ({"type": "string", "minLength": 2}, {"allOf": [STRING, {"minLength": 2}]}),
    ({"oneOf": [STRING, {"type": "array"}]}, {"anyOf": [{"type": "array"}, STRING]}),
    (STRING, {"type": "string", "not": {"enum": [{"a": 1}, -1]}}),
    (STRING, {"type": "string", "not": {"type": ["array", "number"], "minItems": 3}}),
    (FOO, {**FOO, "not": {"type": "array", "items": {"enum": ["abc", 10, ["a"], None]}}}),
    ({"type": "object", "required": ["a"]}, {"type": "object", "required": ["a"], "not": {"maxProperties": 0}}),
    ({"additionalProperties": STRING}, {"additionalProperties": STRING, "properties": {"b": STRING}}),
    (
        {"patternProperties": {"^x-": STRING}},
        {"patternProperties": {"^x-": STRING}, "properties": {"x-a": STRING}},
    ),
    (node("N"), node("Node")),
    (node("N"), written_out("N")),
    (written_out("N"), node("Other")),
    (DRAFT_7 | {"dependencies": {"a": ["b"]}}, DRAFT_7 | {"dependencies": {"a": {"required": ["b"]}}}),
    ({"if": STRING, "then": {"minLength": 1}}, {"anyOf": [{"not": STRING}, {"type": "string", "minLength": 1}]}),
    ({"prefixItems": [STRING], "items": STRING}, {"items": STRING}),
    ({"contains": {"const": 1}, "items": STRING}, {"not": {"type": "array"}}),
    ({"type": "integer", "minimum": 1, "maximum": 3, "not": {"const": 2}}, {"enum": [1, 3]}),
]


@pytest.mark.parametrize(("first", "second"), EQUAL)
def test_equal_schemas_cover_each_other(first: Json, second: Json) -> None:
    assert is_proved(first, second)
    assert is_proved(second, first)


NARROWER: Final = [
    ({**FOO, "required": ["foo", "bar"]}, {"anyOf": [{**FOO, "required": [name]} for name in ("foo", "bar")]}),
    ({"type": "string", "pattern": r"^\d{4}-\d{2}-\d{2}$"}, {"type": "string", "pattern": "."}),
    (node("N", a={"const": 1}), node("N", a={"type": "integer"})),
    ({"propertyNames": {"maxLength": 2}}, {"propertyNames": {"maxLength": 3}}),
    ({"type": "array", "minItems": 2, "items": STRING}, {"contains": STRING}),
]


@pytest.mark.parametrize(("narrow", "wide"), NARROWER)
def test_only_the_wider_schema_covers_the_other(narrow: Json, wide: Json) -> None:
    assert is_proved(narrow, wide)
    assert not is_proved(wide, narrow)


DIFFERENT: Final = [
    (STRING, {"type": "string", "not": {"enum": [{"a": 1}, "x"]}}),
    (FOO, {**FOO, "not": {"properties": {"foo": STRING}}}),
    (node("N", a=STRING), node("Node", a={"type": "string", "minLength": 1})),
    ({"additionalProperties": STRING}, {"additionalProperties": STRING, "properties": {"b": {"const": ""}}}),
    ({"patternProperties": {"x": STRING}}, {"additionalProperties": STRING}),
    (DRAFT_4 | {"enum": [1]}, DRAFT_4 | {"type": "integer"}),
    ({"unevaluatedProperties": False}, {"unevaluatedProperties": STRING, "properties": {"a": STRING}}),
    (DRAFT_7 | {"contentEncoding": "base64"}, DRAFT_7 | {"contentEncoding": "base64", "contentMediaType": "text/a"}),
    ({"$dynamicRef": "#a", "$defs": {"a": {"$dynamicAnchor": "a"}}}, {"$dynamicRef": "#a"}),
    ({"contains": STRING, "minContains": 0}, {"contains": STRING}),
    ({"dependencies": {"a": ["c"]}}, {"dependencies": {"a": ["b"]}}),
]


@pytest.mark.parametrize(("old", "new"), DIFFERENT)
def test_no_proof_is_found_of_what_is_wrong(old: Json, new: Json) -> None:
    assert not is_proved(old, new)


@pytest.mark.parametrize("edits", [schema_edits, vocabulary_edits])
def test_no_instance_refutes_a_proof(edits: Any) -> None:
    proved = 0
    for number in range(PAIRS):
        chance = random.Random(f"refutation/{number}")
        old = schema_edits.schema(chance)
        new = edits.edited(chance, old)
        for narrow, wide in ((old, new), (new, old)):
            judges = SchemaValidator(narrow), SchemaValidator(wide)
            if judges[0].dialect is judges[1].dialect and is_proved(narrow, wide):
                proved += 1
                found = [one for one in schema_edits.aim(narrow, wide, str(number)) if judges[0].accepts(one)]
                assert all(map(judges[1].accepts, found)), (narrow, wide)
    assert proved > PAIRS // 3


IMPLIED: Final = [
    (r"^\d{4}-\d{2}-\d{2}$", "."),
    (r"^\d{4}-\d{2}-\d{2}$", r"\d+"),
    ("^(a|bc?)$", "."),
    ("^(a|bc?)$", "[abc]"),
    ("x{2,}", r"\S"),
    (r"^[^\s]", "."),
    ("^.$", "."),
    (r"^\u00e9*\x41", "[A-Z]"),
]
NOT_IMPLIED: Final = [
    ("^a*$", "."),
    ("^(a|b?)$", "."),
    ("^a{0,3}$", "."),
    (r"^\n$", "."),
    (r"^[\s\S]$", "."),
    ("^[^a]$", "."),
    (r"^\u2028$", "."),
    ("^(?!x).$", "."),  # an engine with look-arounds reads `.` differently
    ("^(?=a)", "."),
    (r"^(.)?\1$", "."),
    ("^[]a]$", "[a]"),
    ("^a$", "^b$"),
    ("^a$", "b"),
    ("^.$", "[a-z]"),
    ("", "."),
    ("(", "."),
]


@pytest.mark.parametrize(("pattern", "other"), IMPLIED)
def test_a_pattern_implies_another_one(pattern: str, other: str) -> None:
    assert patterns.implies(pattern, other)


@pytest.mark.parametrize(("pattern", "other"), NOT_IMPLIED)
def test_a_pattern_does_not_imply_another_one(pattern: str, other: str) -> None:
    assert not patterns.implies(pattern, other)


def test_a_proof_ends_unproved_after_its_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    first, second = node("N"), node("Node")
    assert is_proved(first, second)
    monkeypatch.setattr(refutation, "STEPS", 10)
    assert not is_proved(first, second)


def test_a_deep_schema_is_unproved() -> None:
    deep: Json = {"type": "string", "minLength": 2}
    for _ in range(200):
        deep = {"items": deep}
    assert not is_proved(deep, {**deep, "maxItems": 3})
