"""Schemas without references (`wire: {refs: inlined}`) accept the same instances; remaining references are reported."""

from __future__ import annotations

import asyncio
import importlib
import json
import random
from pathlib import Path
from typing import Any

import jsonschema_rs
import mcp
import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import corpus
import suite
from amounts import choose
from packages import check, generate, imported, manifest, tool
from stubwright import ir
from stubwright.compile import pipeline
from stubwright.diagnostics import Place
from stubwright.diff.compare import compare
from stubwright.diff.subsumption.proof import SchemaValidator, covers
from stubwright.jsonschema import dialects
from stubwright.jsonschema.inlining import LARGEST, InlinedSchema, inline
from stubwright.jsonschema.references import Folder, LocalTarget, Outline
from stubwright.project.files import disk

pytestmark = pytest.mark.corpus

DRAFT_7 = "http://json-schema.org/draft-07/schema#"
PLACE = Place("m.yaml", ("tools", 0, "inputSchema"))


def inlined(schema: dict[str, Any]) -> InlinedSchema:
    before = json.dumps(schema)
    made = inline(schema, dialects.find_dialect(schema) or dialects.DRAFT_2020_12, PLACE)
    assert json.dumps(schema) == before, "the schema itself stays as it is"
    return made


def references(schema: Any) -> list[str]:
    dialect = dialects.find_dialect(schema) or dialects.DRAFT_2020_12
    return [
        one["$ref"]
        for _, one in dialects.iterate_subschemas(schema, dialect)
        if isinstance(one, dict) and "$ref" in one
    ]


# The replacement of a reference

TEXT = {"type": "string", "minLength": 1}
POINT = {"type": "object", "properties": {"x": {"type": "number"}}, "required": ["x"]}
CASES: list[tuple[str, dict[str, Any], dict[str, Any]]] = [
    (
        "alone",
        {"properties": {"a": {"$ref": "#/$defs/T"}}, "$defs": {"T": TEXT}},
        {"properties": {"a": TEXT}},
    ),
    (
        "beside words, which say more",
        {
            "properties": {"a": {"$ref": "#/$defs/T", "description": "A."}},
            "$defs": {"T": {**TEXT, "description": "T."}},
        },
        {"properties": {"a": {**TEXT, "description": "A."}}},
    ),
    (
        "beside keywords that go together, in their order",
        {"properties": {"a": {"title": "A", "$ref": "#/$defs/T", "maxLength": 5}}, "$defs": {"T": TEXT}},
        {"properties": {"a": {"title": "A", **TEXT, "maxLength": 5}}},
    ),
    (
        "beside the same keyword with another value",
        {"properties": {"a": {"pattern": "^a", "$ref": "#/$defs/T"}}, "$defs": {"T": {**TEXT, "pattern": "z$"}}},
        {"properties": {"a": {"pattern": "^a", "allOf": [{**TEXT, "pattern": "z$"}]}}},
    ),
    (
        "beside another bound",
        {"properties": {"a": {"minLength": 3, "$ref": "#/$defs/T"}}, "$defs": {"T": TEXT}},
        {"properties": {"a": {"minLength": 3, "type": "string"}}},
    ),
    (
        "beside another upper bound",
        {"items": {"maximum": 9, "$ref": "#/$defs/N"}, "$defs": {"N": {"type": "number", "maximum": 7.5}}},
        {"items": {"maximum": 7.5, "type": "number"}},
    ),
    (
        "beside a wider type",
        {
            "items": {"type": ["number", "string"], "$ref": "#/$defs/N"},
            "$defs": {"N": {"type": ["integer", "string", "null"]}},
        },
        {"items": {"type": ["string", "integer"]}},
    ),
    (
        "beside another type, which leaves nothing",
        {"items": {"type": "number", "$ref": "#/$defs/T"}, "$defs": {"T": TEXT}},
        {"items": {"type": "number", "allOf": [TEXT]}},
    ),
    (
        "beside a keyword that looks into it",
        {
            "$ref": "#/$defs/P",
            "properties": {"y": TEXT},
            "unevaluatedProperties": False,
            "$defs": {"P": POINT},
        },
        {**POINT, "properties": {"x": {"type": "number"}, "y": TEXT}, "additionalProperties": False},
    ),
    (
        "beside a keyword that looks into it, and a part that stays one",
        {
            "allOf": [{"$ref": "#/$defs/P"}, {"not": {"required": ["z"]}}, {"not": {"required": ["w"]}}],
            "unevaluatedProperties": False,
            "$defs": {"P": POINT},
        },
        {
            "unevaluatedProperties": False,
            **POINT,
            "not": {"required": ["z"]},
            "allOf": [{"not": {"required": ["w"]}}],
        },
    ),
    (
        "beside a keyword that looks into it, and finds all",
        {
            "$ref": "#/$defs/P",
            "unevaluatedProperties": False,
            "$defs": {"P": {**POINT, "additionalProperties": TEXT}},
        },
        {**POINT, "additionalProperties": TEXT},
    ),
    (
        "with a keyword that does not look beside it",
        {"$ref": "#/$defs/P", "properties": {"y": TEXT}, "$defs": {"P": {**POINT, "unevaluatedProperties": False}}},
        {"properties": {"y": TEXT}, "allOf": [{**POINT, "unevaluatedProperties": False}]},
    ),
    (
        "as a part of an allOf, another one of which looks at none",
        {
            "allOf": [{"unevaluatedProperties": False}, {"$ref": "#/$defs/P"}],
            "$defs": {"P": {"properties": {"x": TEXT}}},
        },
        {"properties": {"x": TEXT}, "allOf": [{"unevaluatedProperties": False}]},
    ),
    (
        "closed, beside properties that it has",
        {
            "$ref": "#/$defs/P",
            "properties": {"x": {"minimum": 0}},
            "$defs": {"P": {**POINT, "additionalProperties": False}},
        },
        {**POINT, "properties": {"x": {"type": "number", "minimum": 0}}, "additionalProperties": False},
    ),
    (
        "closed, beside properties that it does not have",
        {
            "$ref": "#/$defs/P",
            "properties": {"y": TEXT},
            "$defs": {"P": {**POINT, "additionalProperties": False}},
        },
        {"properties": {"y": TEXT}, "allOf": [{**POINT, "additionalProperties": False}]},
    ),
    (
        "closed, beside a pattern that it does not have",
        {
            "$ref": "#/$defs/P",
            "patternProperties": {"^y": TEXT},
            "$defs": {"P": {**POINT, "additionalProperties": False}},
        },
        {"patternProperties": {"^y": TEXT}, "allOf": [{**POINT, "additionalProperties": False}]},
    ),
    (
        "both about the others of the same properties",
        {
            "$ref": "#/$defs/P",
            "properties": {"x": True},
            "additionalProperties": {"maxLength": 9},
            "$defs": {"P": {**POINT, "additionalProperties": TEXT}},
        },
        {**POINT, "additionalProperties": {**TEXT, "maxLength": 9}},
    ),
    (
        "beside a keyword that looks at its neighbors",
        {"properties": {"a": {"$ref": "#/$defs/P", "additionalProperties": False}}, "$defs": {"P": POINT}},
        {"properties": {"a": {"additionalProperties": False, "allOf": [POINT]}}},
    ),
    (
        "beside properties of other names",
        {"$ref": "#/$defs/P", "properties": {"y": TEXT}, "required": ["y"], "$defs": {"P": POINT}},
        {
            "type": "object",
            "properties": {"x": {"type": "number"}, "y": TEXT},
            "required": ["x", "y"],
        },
    ),
    (
        "beside properties of the same names",
        {"$ref": "#/$defs/P", "properties": {"x": {"minimum": 0}, "y": {"maxLength": 1}}, "$defs": {"P": POINT}},
        {
            "type": "object",
            "properties": {"x": {"type": "number", "minimum": 0}, "y": {"maxLength": 1}},
            "required": ["x"],
        },
    ),
    (
        "as a part of an allOf",
        {"allOf": [{"$ref": "#/$defs/P"}, {"properties": {"y": TEXT}, "required": ["y"]}], "$defs": {"P": POINT}},
        {
            "type": "object",
            "properties": {"x": {"type": "number"}, "y": TEXT},
            "required": ["x", "y"],
        },
    ),
    (
        "as a part of an allOf, one part of which closes the object",
        {"allOf": [{"$ref": "#/$defs/P"}, {"additionalProperties": False}], "$defs": {"P": POINT}},
        {**POINT, "allOf": [{"additionalProperties": False}]},
    ),
    (
        "beside an allOf",
        {"properties": {"a": {"allOf": [{"maxLength": 9}], "$ref": "#/$defs/T"}}, "$defs": {"T": TEXT}},
        {"properties": {"a": {**TEXT, "maxLength": 9}}},
    ),
    (
        "not at all: an allOf of plain objects",
        {"description": "D.", "allOf": [{**POINT, "description": "P."}, {"properties": {"y": TEXT}}]},
        {
            "description": "D.",
            "type": "object",
            "properties": {"x": {"type": "number"}, "y": TEXT},
            "required": ["x"],
        },
    ),
    (
        "in the root",
        {"type": "object", "$ref": "#/$defs/P", "$defs": {"P": POINT}},
        {"type": "object", "properties": POINT["properties"], "required": ["x"]},
    ),
    (
        "over several steps",
        {
            "items": {"$ref": "#/$defs/A"},
            "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"items": {"$ref": "#/$defs/T"}}, "T": TEXT},
        },
        {"items": {"items": TEXT}},
    ),
    (
        "true and false",
        {
            "properties": {
                "a": {"$ref": "#/$defs/Y"},
                "b": {"$ref": "#/$defs/N"},
                "c": {"type": "null", "$ref": "#/$defs/N"},
            },
            "$defs": {"Y": True, "N": False},
        },
        {"properties": {"a": True, "b": False, "c": {"type": "null", "allOf": [False]}}},
    ),
    (
        "a place that is no definition",
        {"properties": {"a": TEXT, "b": {"$ref": "#/properties/a"}}},
        {"properties": {"a": TEXT, "b": TEXT}},
    ),
    (
        "a definition of a part",
        {
            "properties": {
                "a": {"$ref": "#/properties/b/$defs/T"},
                "b": {"$defs": {"T": TEXT, "U": True}, "type": "null"},
            }
        },
        {"properties": {"a": TEXT, "b": {"type": "null"}}},
    ),
    (
        "before 2019-09 nothing beside it counts",
        {
            "$schema": DRAFT_7,
            "items": {"$ref": "#/definitions/T", "maxLength": 2, "description": "A.", "x-a": 1},
            "definitions": {"T": TEXT},
        },
        {"$schema": DRAFT_7, "items": {**TEXT, "description": "A.", "x-a": 1}},
    ),
    (
        "before 2019-09 nothing looks into it",
        {
            "$schema": DRAFT_7,
            "items": {"allOf": [{"$ref": "#/definitions/P"}], "unevaluatedProperties": False},
            "definitions": {"P": POINT},
        },
        {"$schema": DRAFT_7, "items": {"unevaluatedProperties": False, **POINT}},
    ),
    (
        "no data",
        {"properties": {"$ref": {"const": {"$ref": "#/$defs/T"}}}, "default": {"$ref": "x"}},
        {"properties": {"$ref": {"const": {"$ref": "#/$defs/T"}}}, "default": {"$ref": "x"}},
    ),
]


@pytest.mark.parametrize(("schema", "expected"), [case[1:] for case in CASES], ids=[case[0] for case in CASES])
def test_what_stands_in_its_place(schema: dict[str, Any], expected: dict[str, Any]) -> None:
    made = inlined(schema)
    assert made == InlinedSchema(expected)
    assert _order(made.wire) == _order(expected)


@pytest.mark.parametrize("schema", [case[1] for case in CASES], ids=[case[0] for case in CASES])
def test_each_of_them_is_proved_to_accept_the_same(schema: dict[str, Any]) -> None:
    before, after = SchemaValidator(schema), SchemaValidator(inlined(schema).wire)
    assert covers(after, before), "it accepts all that the original accepts"
    assert covers(before, after), "it accepts nothing else"


def _order(value: Any) -> Any:
    if isinstance(value, dict):
        return [(key, _order(below)) for key, below in value.items()]
    return [_order(below) for below in value] if isinstance(value, list) else value


# What stays a reference

TREE: dict[str, Any] = {
    "type": "object",
    "properties": {"name": {"$ref": "#/$defs/T"}, "under": {"items": {"$ref": "#/$defs/Tree"}}},
}


def test_what_leads_back_to_itself_stays_bundled_and_nothing_else() -> None:
    schema = {
        "properties": {"tree": {"$ref": "#/$defs/Tree"}, "text": {"$ref": "#/$defs/T"}},
        "$defs": {"Tree": TREE, "T": TEXT, "Unused": {"items": {"$ref": "#/$defs/Unused"}}},
    }
    made = inlined(schema)
    tree = {**TREE, "properties": {**TREE["properties"], "name": TEXT}}
    assert made.wire == {
        "properties": {"tree": {"$ref": "#/$defs/Tree"}, "text": TEXT},
        "$defs": {"Tree": tree},
    }
    assert made.kept == "`#/$defs/Tree` contains itself"


@pytest.mark.parametrize(
    ("schema", "expected", "accepted", "rejected"),
    [
        (
            {
                "$ref": "#/$defs/P",
                "properties": {"x": {"properties": {"n": {"$ref": "#/properties/x"}}}},
                "$defs": {"P": {"properties": {"x": {"required": ["a"]}}}},
            },
            {
                "properties": {"x": {"properties": {"n": {"$ref": "#/properties/x"}}}},
                "allOf": [{"properties": {"x": {"required": ["a"]}}}],
            },
            {"x": {"a": 1, "n": {}}},
            {"x": {"n": {}}},
        ),
        (
            {
                "allOf": [
                    {"$ref": "#/$defs/P"},
                    {"type": "object", "properties": {"n": {"$ref": "#/allOf/1"}}},
                ],
                "$defs": {"P": {"required": ["a"]}},
            },
            {
                "allOf": [
                    {"required": ["a"]},
                    {"type": "object", "properties": {"n": {"$ref": "#/allOf/1"}}},
                ],
            },
            {"a": 1, "n": {"n": {}}},
            {"a": 1, "n": {"n": 1}},
        ),
        (
            {
                "$ref": "#/$defs/P",
                "unevaluatedProperties": {"items": {"$ref": "#/unevaluatedProperties"}},
                "$defs": {"P": {"properties": {"x": {"type": "null"}}}},
            },
            {
                "unevaluatedProperties": {"items": {"$ref": "#/unevaluatedProperties"}},
                "allOf": [{"properties": {"x": {"type": "null"}}}],
            },
            {"x": None, "y": [[]]},
            {"x": 1},
        ),
    ],
    ids=["a property", "a part of allOf", "the properties that nothing else is about"],
)
def test_what_a_reference_still_leads_to_does_not_move(
    schema: dict[str, Any], expected: dict[str, Any], accepted: Any, rejected: Any
) -> None:
    made = inlined(schema)
    assert made.wire == expected
    assert made.kept is not None
    for one in (schema, made.wire):
        validator = jsonschema_rs.validator_for(one, offline=True)
        assert validator.is_valid(accepted)
        assert not validator.is_valid(rejected)


def test_a_bound_that_its_neighbour_changes_stays_where_it_is() -> None:
    draft_4 = dialects.DRAFT_4.uri
    schema = {
        "$schema": draft_4,
        "items": {"allOf": [{"minimum": 3, "exclusiveMinimum": True}, {"$ref": "#/definitions/N"}]},
        "definitions": {"N": {"minimum": 5}},
    }
    made = inlined(schema)
    first = {"minimum": 3, "exclusiveMinimum": True}
    assert made.wire == {"$schema": draft_4, "items": {**first, "allOf": [{"minimum": 5}]}}


def test_circles_of_several_and_of_the_root_stay() -> None:
    circle: dict[str, Any] = {
        "items": {"$ref": "#/$defs/A"},
        "$defs": {"A": {"items": {"$ref": "#/$defs/B"}}, "B": {"items": {"$ref": "#/$defs/A"}}, "C": TEXT},
    }
    made = inlined(circle)
    assert made.wire["$defs"] == {name: circle["$defs"][name] for name in "AB"}
    assert made.kept == "`#/$defs/A`, `#/$defs/B` contain themselves"
    root = {"properties": {"next": {"$ref": "#"}, "at": {"$ref": "#/$defs/T"}}, "$defs": {"T": TEXT}}
    assert inlined(root).wire == {"properties": {"next": {"$ref": "#"}, "at": TEXT}}
    through = {
        "$schema": DRAFT_7,
        "$ref": "#/definitions/M",
        "definitions": {"M": {"properties": {"m": {"$ref": "#"}}}},
    }
    assert inlined(through).wire == through


@pytest.mark.parametrize(
    ("schema", "keyword"),
    [
        ({"items": {"$ref": "#a"}, "$defs": {"T": {"$anchor": "a"}}}, "$anchor"),
        ({"items": {"$ref": "#/$defs/T"}, "$defs": {"T": {"$id": "a:b", **TEXT}}}, "$id"),
        ({"items": {"$ref": "#/$defs/T"}, "$defs": {"T": {"$dynamicAnchor": "a"}}}, "$dynamicAnchor"),
        ({"items": {"$dynamicRef": "#/$defs/T"}, "$defs": {"T": TEXT}}, "$dynamicRef"),
        ({"$schema": DRAFT_7, "items": {"$ref": "#a"}, "definitions": {"T": {"$id": "#a"}}}, "$id"),
    ],
)
def test_names_that_count_where_they_stand_keep_all_as_it_is(schema: dict[str, Any], keyword: str) -> None:
    made = inlined(schema)
    assert made.wire is schema
    assert made.kept == f"the schema has `{keyword}`, which changes reference targets"


def test_names_that_nothing_refers_to_are_no_reason_to_warn() -> None:
    schema = {"allOf": [POINT, {"$anchor": "a"}]}
    assert inlined(schema) == InlinedSchema(schema)


def test_a_root_that_has_an_identifier_is_inlined() -> None:
    schema = {"$id": "https://a.example/b", "items": {"$ref": "#/$defs/T"}, "$defs": {"T": TEXT}}
    assert inlined(schema) == InlinedSchema({"$id": "https://a.example/b", "items": TEXT})


def test_meta_schemas_stay() -> None:
    schema = {"items": {"$ref": dialects.DRAFT_2020_12.uri}, "contains": {"$ref": "#/$defs/T"}, "$defs": {"T": TEXT}}
    made = inlined(schema)
    assert made.wire == {"items": {"$ref": dialects.DRAFT_2020_12.uri}, "contains": TEXT}
    assert made.kept == f"the schema refers to the meta-schema `{dialects.DRAFT_2020_12.uri}`"


# How large it may be


def doubling(levels: int) -> dict[str, Any]:
    pairs = {f"L{n}": {"properties": {key: {"$ref": f"#/$defs/L{n + 1}"} for key in "ab"}} for n in range(levels)}
    return {"items": {"$ref": "#/$defs/L0"}, "$defs": {**pairs, f"L{levels}": TEXT}}


def test_sharing_inside_sharing_doubles_at_each_level_up_to_a_bound() -> None:
    sizes = [len(json.dumps(inlined(doubling(levels)).wire)) for levels in (4, 5, 6)]
    assert 1.8 < sizes[1] / sizes[0] < 2.2 > sizes[2] / sizes[1] > 1.8
    huge = doubling(60)
    made = inlined(huge)
    assert made.wire is huge
    assert made.kept is not None
    assert made.kept.endswith(f"characters of JSON, more than {LARGEST:,}")
    steps: dict[str, Any] = {f"A{n}": {"items": {"$ref": f"#/$defs/A{n + 1}"}} for n in range(900)}
    deep = {"items": {"$ref": "#/$defs/A0"}, "$defs": {**steps, "A900": TEXT}}
    assert inlined(deep).kept == "the inlined schema would be nested more than 192 levels deep"
    backwards = {"prefixItems": [{"$ref": f"#/$defs/A{n}"} for n in range(900, -1, -90)], "$defs": deep["$defs"]}
    assert inlined(backwards).wire is backwards


# It accepts the same

NAMES = ("A", "B", "C")
KEYS = st.sampled_from("xyz")


def _simple() -> st.SearchStrategy[Any]:
    return st.one_of(
        st.booleans(),
        st.fixed_dictionaries({"type": st.sampled_from(["string", "integer", "object", "array", "null"])}),
        st.fixed_dictionaries({"minimum": st.integers(-2, 2)}),
        st.fixed_dictionaries({"enum": st.lists(st.sampled_from([None, 1, "a", {}, {"x": 1}]), min_size=1)}),
    )


def _reference(keyword: str) -> st.SearchStrategy[Any]:
    targets = st.sampled_from([f"#/{keyword}/{name}" for name in NAMES])
    return st.fixed_dictionaries({"$ref": targets})


def _schemas(keyword: str) -> st.SearchStrategy[Any]:
    def above(below: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
        keywords = {
            "properties": st.dictionaries(KEYS, below, max_size=2),
            "patternProperties": st.dictionaries(st.just("^x"), below, max_size=1),
            "additionalProperties": below,
            "required": st.lists(KEYS, max_size=2, unique=True),
            "minProperties": st.integers(0, 2),
            "allOf": st.lists(below, min_size=1, max_size=2),
            "anyOf": st.lists(below, min_size=1, max_size=2),
            "oneOf": st.lists(below, min_size=1, max_size=2),
            "not": below,
            "if": below,
            "then": below,
            "else": below,
            "items": below,
            "contains": below,
            "propertyNames": below,
            "description": st.just("Words."),
            "$defs": st.dictionaries(st.just("N"), below, max_size=1),
        }
        if keyword == "$defs":
            keywords |= {"prefixItems": st.lists(below, min_size=1, max_size=2), "minContains": st.integers(0, 2)}
            keywords |= {"unevaluatedProperties": below, "unevaluatedItems": below}
            keywords |= {"dependentSchemas": st.dictionaries(KEYS, below, max_size=1)}
        plain = st.lists(st.sampled_from([*keywords]), max_size=3, unique=True).flatmap(
            lambda chosen: st.fixed_dictionaries({one: keywords[one] for one in chosen})
        )
        beside = st.tuples(_reference(keyword), plain).map(lambda both: {**both[1], **both[0]})
        return st.one_of(plain, beside)

    return st.recursive(st.one_of(_simple(), _reference(keyword)), above, max_leaves=8)


INSTANCES = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-3, 3), st.sampled_from(["", "a"])),
    lambda below: st.one_of(st.lists(below, max_size=3), st.dictionaries(KEYS, below, max_size=3)),
    max_leaves=6,
)


@st.composite
def _cases(draw: st.DrawFn) -> tuple[dict[str, Any], list[Any]]:
    dialect = draw(st.sampled_from([dialects.DRAFT_2020_12, dialects.DRAFT_7]))
    schemas = _schemas(dialect.defs)
    body = draw(schemas.filter(lambda one: isinstance(one, dict)))
    defs = draw(st.fixed_dictionaries(dict.fromkeys(NAMES, schemas)))
    schema = {"$schema": dialect.uri, **body, dialect.defs: defs}
    return schema, draw(st.lists(INSTANCES, min_size=3, max_size=12))


def _loops(schema: dict[str, Any]) -> bool:
    """Whether a definition applies itself to its own instance, which `check` refuses (SW223)."""
    dialect = dialects.find_dialect(schema) or dialects.DRAFT_2020_12
    outline = Outline(PLACE, schema, dialect, Folder("", {}))
    leading: dict[Any, set[Any]] = {(dialect.defs, name): set() for name in NAMES}
    for reference in outline.references:
        for pointer in outline.find_folded(reference.pointer):
            if pointer in leading and isinstance(reference.target, LocalTarget):
                leading[pointer].add(reference.target.pointer)
    for start, first in leading.items():
        waiting = [*first]
        for other in waiting:  # grows while it is read
            waiting += leading[other] - {*waiting}
        if start in waiting:
            return True
    return False


@settings(max_examples=choose(corpus.VARIABLE, 15, 200, 1000), suppress_health_check=[*HealthCheck])
@given(_cases())
@example(
    (
        {
            "$schema": dialects.DRAFT_2020_12.uri,
            "not": {"not": {}, "$defs": {"N": {"$ref": "#/$defs/A"}}, "if": {}},
            "$defs": {
                "A": {"$ref": "#/$defs/C"},
                "B": False,
                "C": {"not": False, "$defs": {"N": {"$ref": "#/$defs/C"}}},
            },
        },
        [None],
    )
)
def test_it_accepts_the_same(case: tuple[dict[str, Any], list[Any]]) -> None:
    schema, values = case
    if _loops(schema):
        return
    made = inlined(schema)
    before, after = (jsonschema_rs.validator_for(one, offline=True) for one in (schema, made.wire))
    assert [before.is_valid(value) for value in values] == [after.is_valid(value) for value in values]
    assert (made.kept is None) == (not references(made.wire))


def _object(pick: random.Random, depth: int, defs: str) -> dict[str, Any]:
    """A schema of objects whose parts overlap."""
    has = pick.random
    schema: dict[str, Any] = {}
    if has() < 0.7:
        schema["type"] = pick.choice(["object", ["object", "null"], ["object", "string"]])
    if has() < 0.8:
        schema["properties"] = {name: _part(pick, depth - 1, defs) for name in pick.sample("abcx", pick.randint(1, 3))}
    if has() < 0.4:
        schema["required"] = pick.sample("abcx", pick.randint(1, 2))
    if has() < 0.15:
        schema["additionalProperties"] = pick.choice([True, False, {}, {"type": "string"}])
    if has() < 0.15:
        schema["patternProperties"] = {"^[xa]": _part(pick, depth - 1, defs)}
    if has() < 0.1 and defs == "$defs":
        schema["unevaluatedProperties"] = False
    if has() < 0.3 and depth > 0:
        schema["allOf"] = [_part(pick, depth - 1, defs) for _ in range(pick.randint(1, 3))]
    if has() < 0.35:
        schema["$ref"] = f"#/{defs}/{pick.choice('PQ')}"
    return schema


def _part(pick: random.Random, depth: int, defs: str) -> Any:
    chance = pick.random()
    if depth > 0 and chance < 0.45:
        return _object(pick, depth, defs)
    if chance < 0.6:
        return {"$ref": f"#/{defs}/{pick.choice('PQ')}"}
    return pick.choice([True, False, {"type": "string"}, {"type": ["integer", "string"]}, {"minimum": 0, "title": "T"}])


def _instance(pick: random.Random, depth: int) -> Any:
    if depth > 0 and pick.random() < 0.7:
        return {name: _instance(pick, depth - 1) for name in pick.sample("abcxy", pick.randint(0, 4))}
    return pick.choice([None, 1, -1, "a", True, [1], {}])


@pytest.mark.long
def test_objects_that_are_merged_accept_the_same() -> None:
    accepted = plain = 0
    seeds = choose(corpus.VARIABLE, 600, 3000, 10_000)
    for seed in range(seeds):
        pick = random.Random(seed)
        dialect = pick.choice([dialects.DRAFT_2020_12, dialects.DRAFT_7])
        text = json.dumps([_object(pick, 1, dialect.defs), _object(pick, 1, dialect.defs)])
        for name, below in (("Q", "R"), ("P", "Q")):
            text = text.replace(f"#/{dialect.defs}/{name}", f"#/{dialect.defs}/{below}")
        first, second = json.loads(text)
        second = json.loads(json.dumps(second).replace(f"#/{dialect.defs}/Q", f"#/{dialect.defs}/R"))
        defs = {"P": first, "Q": second, "R": {"type": "object", "properties": {"x": {"type": "integer"}}}}
        schema = {"$schema": dialect.uri, **_object(pick, 2, dialect.defs), dialect.defs: defs}
        made = inlined(schema)
        before, after = (jsonschema_rs.validator_for(one, offline=True) for one in (schema, made.wire))
        plain += "allOf" not in json.dumps(made.wire)
        for _ in range(25):
            value = _instance(pick, 3)
            accepted += before.is_valid(value)
            assert before.is_valid(value) == after.is_valid(value), (schema, made.wire, value)
    assert min(accepted, plain) > seeds / 4


def test_objects_that_are_merged_are_proved_to_accept_the_same() -> None:
    merged = proved = 0
    seeds = choose(corpus.VARIABLE, 100, 700, 2000)
    for seed in range(seeds):
        pick = random.Random(seed)
        text = json.dumps([_object(pick, 1, "$defs"), _object(pick, 1, "$defs")])
        for name in "PQ":
            text = text.replace(f"#/$defs/{name}", "#/$defs/R")
        first, second = json.loads(text)
        defs = {"P": first, "Q": second, "R": {"type": "object", "properties": {"x": {"type": "integer"}}}}
        schema = {**_object(pick, 2, "$defs"), "$defs": defs}
        made = inlined(schema).wire
        if "allOf" not in json.dumps(made):
            merged += 1
            proved += covers(SchemaValidator(made), SchemaValidator(schema)) and covers(
                SchemaValidator(schema), SchemaValidator(made)
            )
    # the proof gives up on some schemas with patterns that match names, or with nested `unevaluatedProperties`
    assert proved > 0.85 * merged > 0.3 * seeds


@pytest.mark.parametrize("draft", ["draft2020-12", "draft2019-09", "draft7"])
def test_the_official_cases_are_decided_the_same(corpus: Path, draft: str) -> None:
    counted = changed = 0
    for path in suite.files(corpus, draft):
        for group in json.loads(path.read_text("utf-8")):
            schema = group["schema"]
            if path.stem == "refRemote" or not isinstance(schema, dict) or not _stands_alone(schema, draft):
                continue
            made = inline(schema, suite.DRAFTS[draft], PLACE)
            validator = jsonschema_rs.validator_for(_of(made.wire, draft), offline=True)
            changed += made.wire is not schema
            for test in group["tests"]:
                counted += 1
                assert validator.is_valid(test["data"]) is test["valid"], (path.stem, group["description"])
    assert counted > 700
    assert changed > 15


def _of(schema: Any, draft: str) -> Any:
    return {"$schema": suite.DRAFTS[draft].uri, **schema}


def _stands_alone(schema: dict[str, Any], draft: str) -> bool:
    """Whether its references lead into itself, so that a manifest could have it."""
    try:
        jsonschema_rs.validator_for(_of(schema, draft), offline=True)
    except jsonschema_rs.ValidationError:
        return False
    return "localhost:1234" not in json.dumps(schema)


# A manifest

DESK = manifest(
    [
        tool("open", {"ticket": {"$ref": "#/schemas/Ticket"}}, outputSchema={"$ref": "#/schemas/Ticket"}),
        tool("all", outputSchema={"type": "object", "properties": {"found": {"items": {"$ref": "#/schemas/Ticket"}}}}),
        tool(
            "page",
            {"after": {"allOf": [{"$ref": "#/schemas/Ticket"}, {"properties": {"size": {"type": "integer"}}}]}},
            outputSchema={
                "type": "object",
                "$ref": "#/schemas/Ticket",
                "properties": {"more": {"type": "boolean"}},
                "unevaluatedProperties": False,
            },
        ),
    ],
    name="inlined-desk",
    schemas={
        "Ticket": {"type": "object", "properties": {"id": {"$ref": "#/schemas/Id"}}, "required": ["id"]},
        "Id": {"type": "integer", "minimum": 1},
    },
)
HANDLERS = {
    "open": lambda args, ctx: {"id": args.ticket.id},
    "all": lambda args, ctx: {"found": []},
    "page": lambda args, ctx: {"id": 1},
}


def test_the_wire_has_no_references_and_the_models_are_the_same(tmp_path: Path) -> None:
    folders = {}
    for refs in ("bundled", "inlined"):
        (tmp_path / refs).mkdir()
        package = generate(tmp_path / refs, {**DESK, "wire": {"refs": refs}})
        folders[refs] = {
            str(path.relative_to(tmp_path / refs / package)): path.read_text()
            for path in (tmp_path / refs / package).rglob("*")
            if path.is_file()
        }
    differing = {name for name in folders["bundled"] if folders["bundled"][name] != folders["inlined"][name]}
    assert folders["bundled"].keys() == folders["inlined"].keys()
    assert differing == {"manifest.json"}
    assert "$ref" in folders["bundled"]["manifest.json"]
    assert "$ref" not in folders["inlined"]["manifest.json"]
    assert "$defs" not in folders["inlined"]["manifest.json"]

    async def go() -> None:
        server = importlib.import_module(f"{package}.server")
        handlers = type("Handlers", (), {name: staticmethod(one) for name, one in HANDLERS.items()})()
        async with mcp.Client(server.build_server(handlers), mode="legacy") as client:
            first, _, page = (await client.list_tools()).tools
            ticket: dict[str, Any] = {
                "type": "object",
                "properties": {"id": DESK["schemas"]["Id"]},
                "required": ["id"],
            }
            assert first.input_schema["properties"] == {"ticket": ticket}
            assert first.output_schema == ticket
            assert page.input_schema["properties"]["after"] == {
                **ticket,
                "properties": {**ticket["properties"], "size": {"type": "integer"}},
            }
            assert page.output_schema == {
                **ticket,
                "properties": {**ticket["properties"], "more": {"type": "boolean"}},
                "additionalProperties": False,
            }
            result = await client.call_tool("open", {"ticket": {"id": 3}})
            assert result.structured_content == {"id": 3}
            wrong = await client.call_tool("open", {"ticket": {"id": 0}})
            assert wrong.is_error

    with imported(tmp_path / "inlined", package):
        asyncio.run(go())


def test_check_says_what_stays(tmp_path: Path) -> None:
    tree = {"type": "object", "properties": {"under": {"items": {"$ref": "#/schemas/Tree"}}}}
    tools = [tool("plant", {"tree": {"$ref": "#/schemas/Tree"}}), tool("say")]
    value = manifest(tools, schemas={"Tree": tree}, wire={"refs": "inlined"}, lint={"ignore": ["SW352"]})
    (said,) = check(tmp_path, value)
    assert (said.code, said.message) == (
        "SW341",
        "the `inputSchema` of `plant` still has references: `#/$defs/Tree` contains itself",
    )
    assert isinstance(said.at, Place)
    assert (said.at.pointer, said.at.on) == (("tools", 0, "inputSchema"), "key")
    assert check(tmp_path, {**value, "emit": ["client"]}) == []
    assert check(tmp_path, {**value, "wire": {"refs": "bundled"}}) == []


def test_diff_tells_it_as_another_text_and_nothing_else(tmp_path: Path) -> None:
    results: list[ir.Manifest] = []
    for refs in ("bundled", "inlined"):
        path = tmp_path / f"{refs}.json"
        path.write_text(json.dumps({**DESK, "wire": {"refs": refs}}))
        compiled = pipeline.compile_manifest(str(path), disk.Disk(), "manifest.json").manifest
        assert compiled is not None
        results.append(compiled)
    (change,) = compare(results[0], results[1])
    assert (change.code, change.impact) == ("SW507", "cosmetic")
    assert change.message == "schemas are sent without references; they accept the same values"


SMALL: dict[str, Any] = {"type": "object", "properties": {"x": {"type": "number"}, "y": {"type": "number"}}}
LONG: dict[str, Any] = {"type": "string", "description": "A text that is long enough to cost something. " * 4}


def sent_automatically(folder: Path, properties: dict[str, Any], schemas: dict[str, Any], **wire: str) -> Any:
    value = manifest([tool("a", properties)], schemas=schemas, emit=["server"], wire={"refs": "auto", **wire})
    with imported(folder, generate(folder, value)) as package:
        return package.TOOLS["a"].definition["inputSchema"]


def test_auto_inlines_a_schema_that_is_used_once(tmp_path: Path) -> None:
    sent = sent_automatically(tmp_path, {"at": {"$ref": "#/schemas/Point"}}, {"Point": SMALL})
    assert sent == {"type": "object", "properties": {"at": SMALL}}


def test_auto_bundles_a_large_schema_that_is_used_often(tmp_path: Path) -> None:
    text = {"$ref": "#/$defs/Text"}
    uses = {name: {"$ref": "#/schemas/Text"} for name in "abc"}
    sent = sent_automatically(tmp_path, uses, {"Text": LONG})
    assert sent == {"type": "object", "properties": dict.fromkeys("abc", text), "$defs": {"Text": LONG}}


def test_auto_bundles_a_recursive_schema_without_a_warning(tmp_path: Path) -> None:
    tree = {"type": "object", "properties": {"under": {"items": {"$ref": "#/schemas/Tree"}}}}
    value = manifest([tool("a", {"tree": {"$ref": "#/schemas/Tree"}})], schemas={"Tree": tree}, wire={"refs": "auto"})
    assert check(tmp_path, {**value, "lint": {"ignore": ["SW352"]}}) == []
    sent = sent_automatically(tmp_path, {"tree": {"$ref": "#/schemas/Tree"}}, {"Tree": tree})
    assert sent["properties"] == {"tree": {"$ref": "#/$defs/Tree"}}


def test_auto_leaves_a_schema_without_references_unchanged(tmp_path: Path) -> None:
    plain = {"allOf": [{"type": "string"}, {"maxLength": 3}]}
    assert sent_automatically(tmp_path, {"a": plain}, {})["properties"] == {"a": plain}


def test_diff_calls_auto_another_text_and_nothing_else(tmp_path: Path) -> None:
    value = {**DESK, "wire": {"refs": "auto"}}
    path = tmp_path / "manifest.json"
    path.write_text(json.dumps(value))
    automatic = pipeline.compile_manifest(str(path), disk.Disk(), "manifest.json").manifest
    path.write_text(json.dumps({**DESK, "wire": {"refs": "bundled"}}))
    bundled = pipeline.compile_manifest(str(path), disk.Disk(), "manifest.json").manifest
    assert automatic is not None
    assert bundled is not None
    (change,) = compare(bundled, automatic)
    assert (change.code, change.impact) == ("SW507", "cosmetic")
    assert change.message == "schemas are sent without references if that costs little; they accept the same values"
