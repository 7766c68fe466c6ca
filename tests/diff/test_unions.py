"""Unions with exclusive alternatives: compared by alternative, without false claims of compatibility."""

from __future__ import annotations

import copy
import random
from typing import Any, Literal

import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import schema_edits
from amounts import choose
from stubwright import ir
from stubwright.diagnostics import Place
from stubwright.diff.changes import find_worst_impact
from stubwright.diff.kinds.schemas import SchemaComparison
from stubwright.diff.subsumption.proof import SchemaValidator, covers
from stubwright.diff.subsumption.unions import merge_exclusive
from stubwright.jsonschema import dialects

Json = Any
HARMLESS = (None, "cosmetic", "compatible", "words")
TAGS: tuple[Json, ...] = (1, 1.0, True, False, 0, None, "a", "b", "1", 2, 2**53, [1], {"a": 1})


def compare(old: Json, new: Json, direction: Literal["input", "output"]) -> str | None:
    """The worst impact of the changes between two schemas."""
    place = Place("manifest.json", ())
    before, after = (ir.Schema(schema, dialects.DRAFT_2020_12.uri, place) for schema in (old, new))
    return find_worst_impact(
        SchemaComparison("tool `t`", direction, before, after, "annotate", "annotate", {}).compare()
    )


def branch(tag: Json, **properties: Json) -> Json:
    """A closed alternative; `tag` is what its kind must be."""
    return {
        "type": "object",
        "properties": {"kind": tag, **properties},
        "required": ["kind"],
        "additionalProperties": False,
    }


def union(*branches: Json, **more: Json) -> Json:
    return {"type": "object", "properties": {"x": {"oneOf": [*branches]}}, **more}


def is_merged(schema: Json) -> bool:
    return "anyOf" in merge_exclusive(schema, dialects.DRAFT_2020_12)


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"const": "a"}, {"const": "b"}),
        ({"const": 1}, {"const": True}),
        ({"const": 1}, {"const": 2.0}),
        ({"const": "1"}, {"const": 1}),
        ({"enum": ["a", "b"]}, {"enum": ["c", None]}),
        ({"const": "a"}, {"type": "integer"}),
        ({"type": "string"}, {"type": ["integer", "null"]}),
        ({"const": "a", "type": "string"}, {"enum": ["b"]}),
    ],
)
def test_what_tells_alternatives_apart(one: Json, two: Json) -> None:
    assert is_merged({"oneOf": [branch(one), branch(two)]})
    assert is_merged({"oneOf": [branch(two), branch(one)]})
    assert is_merged({"oneOf": [one, two]})


@pytest.mark.parametrize(
    ("one", "two"),
    [
        ({"const": 1}, {"const": 1.0}),
        ({"const": 2**53}, {"const": 2**53 + 1}),
        ({"const": 10**400}, {"const": 10**401}),
        ({"enum": ["a", "b"]}, {"enum": ["b", "c"]}),
        ({"const": "a"}, {"type": "string"}),
        ({"type": "integer"}, {"type": "number"}),
        ({"const": [1]}, {"const": [1.0]}),
        ({"const": "a"}, {}),
        ({"const": "a"}, True),
    ],
)
def test_what_does_not_tell_alternatives_apart(one: Json, two: Json) -> None:
    assert not is_merged({"oneOf": [branch(one), branch(two)]})
    assert not is_merged({"oneOf": [one, two]})


A, B, C = (branch({"const": name}, v={"type": "string"}) for name in "abc")


def without(schema: Json, *keywords: str) -> Json:
    return {keyword: value for keyword, value in schema.items() if keyword not in keywords}


@pytest.mark.parametrize(
    ("options", "merged"),
    [
        ([A, B, C], True),
        ([A, B, B], False),
        ([without(A, "required"), B], True),
        ([without(A, "required"), without(B, "required")], False),
        ([without(A, "type"), B], True),
        ([without(A, "type"), without(B, "type")], False),
        ([A | {"type": ["object", "null"]}, B | {"type": ["object", "null"]}], False),
        ([A | {"required": ["v"]}, B | {"required": ["v"]}], False),
        ([{"allOf": [A]}, B], True),
        ([{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}], True),
        ([{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}], False),
        ([{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/nowhere"}], False),
        ([{"$ref": "#/$defs/loop"}, A], False),
        (
            [branch({"type": "object", "properties": {"in": {"const": name}}, "required": ["in"]}) for name in "ab"],
            True,
        ),
    ],
)
def test_which_unions_are_merged(options: Json, *, merged: bool) -> None:
    defs = {"a": A, "b": B, "loop": {"$ref": "#/$defs/loop"}}
    assert is_merged({"oneOf": options, "$defs": defs}) == merged


def test_a_keyword_that_a_dialect_does_not_know_tells_nothing_apart() -> None:
    schema = {"oneOf": [A, B]}
    assert merge_exclusive(schema, dialects.DRAFT_4) == schema
    assert merge_exclusive(schema, dialects.DRAFT_7) == {"anyOf": [A, B]}


def test_siblings_of_a_reference_are_hidden_in_draft_07() -> None:
    options = [{"$ref": "#/definitions/any", "const": name} for name in "ab"]
    schema = {"oneOf": options, "definitions": {"any": {}}}
    assert merge_exclusive(schema, dialects.DRAFT_7) == schema
    assert "anyOf" in merge_exclusive(schema, dialects.DRAFT_2020_12)


def test_a_union_that_something_refers_into_stays() -> None:
    schema = {"oneOf": [A, B], "not": {"$ref": "#/oneOf/0"}}
    assert merge_exclusive(schema, dialects.DRAFT_2020_12) == schema


def test_references_are_not_followed_where_a_part_has_a_base_of_its_own() -> None:
    schema = {"oneOf": [{"$ref": "#/$defs/a"}, B], "$defs": {"a": A, "other": {"$id": "https://example.com/other"}}}
    assert not is_merged(schema)
    assert is_merged(schema | {"$defs": {"a": A}, "$id": "https://example.com/root"})


def test_another_anyof_stays_beside_it() -> None:
    other = [{"required": ["v"]}, {"minProperties": 1}]
    merged = merge_exclusive({"oneOf": [A, B], "anyOf": other, "allOf": [True]}, dialects.DRAFT_2020_12)
    assert merged == {"anyOf": other, "allOf": [True, {"anyOf": [A, B]}]}


TEXT = {"type": "string", "pattern": "^(?!no)[a-z]+$"}
TREE = {"$ref": "#"}


@pytest.mark.parametrize("value", [{"type": "string"}, TEXT, TREE], ids=["plain", "pattern", "recursive"])
@pytest.mark.parametrize(
    ("old", "new"),
    [
        (["a", "b"], ["a", "b", "c"]),
        (["a", "b"], ["c", "b", "a"]),
        (["a"], ["b", "a"]),
    ],
)
def test_an_alternative_more_is_harmless_in_an_input_and_one_fewer_breaks(old: Json, new: Json, value: Json) -> None:
    few, more = (union(*(branch({"const": tag}, v=value) for tag in tags)) for tags in (old, new))
    assert compare(few, more, "input") == compare(more, few, "output") == "compatible"
    assert compare(more, few, "input") == compare(few, more, "output") == "breaking"


@pytest.mark.parametrize("value", [{"type": "string"}, TEXT, TREE], ids=["plain", "pattern", "recursive"])
def test_a_narrower_alternative_is_harmless_in_an_output(value: Json) -> None:
    narrow, wide = (
        union(branch({"const": "a"}, v=value, **more), branch({"const": "b"}, v=value))
        for more in ({}, {"w": {"type": "integer"}})
    )
    assert compare(narrow, wide, "input") == compare(wide, narrow, "output") == "compatible"
    assert compare(wide, narrow, "input") == compare(narrow, wide, "output") == "breaking"


def make_union(chance: random.Random) -> Json:
    """A union of objects with a kind each, which may or may not tell them apart."""
    maker = schema_edits.Maker(chance)
    options = []
    for tag in chance.sample(TAGS, chance.randint(1, 4)):
        option = maker.object(2)
        kind = {"const": tag} if chance.random() < 0.7 else {"enum": [tag, chance.choice(TAGS)]}
        option["properties"] = {**option["properties"], "kind": kind}
        option["required"] = sorted({*option.get("required", ()), *(["kind"] if chance.random() < 0.8 else [])})
        if chance.random() < 0.1:
            del option["type"]
        options.append(option)
    return {"type": "object", "properties": {"a": {"oneOf": options}}, "required": ["a"]}


def edit_union(chance: random.Random, old: Json) -> Json:
    new = copy.deepcopy(old)
    options = new["properties"]["a"]["oneOf"]
    match chance.choice(("more", "fewer", "inside", "order")):
        case "more":
            options += make_union(chance)["properties"]["a"]["oneOf"][:1]
        case "fewer" if len(options) > 1:
            options.pop(chance.randrange(len(options)))
        case "order":
            chance.shuffle(options)
        case _:
            place = chance.randrange(len(options))
            options[place] = schema_edits.edited(chance, options[place])
            new |= {"$defs": options[place].pop("$defs", {})}  # the target of references from there
    return new


def list_instances(one: Json, two: Json, seed: str) -> list[Json]:
    """Instances near the borders of both, each also with every kind."""
    found = [*schema_edits.aim(one, two, seed, tries=8, most=40)]
    objects = [each["a"] for each in found if isinstance(each, dict) and isinstance(each.get("a"), dict)]
    return [*found, *({"a": {**each, "kind": tag}} for each in objects[:12] for tag in TAGS), {"a": 1}, {"a": {}}]


@settings(
    max_examples=choose("STUBWRIGHT_WHOLE_DIFF", 60, 200, 200), suppress_health_check=[*HealthCheck], database=None
)
@given(st.integers(0, 2**48))
def test_random_unions(seed: int) -> None:
    chance = random.Random(seed)
    old = make_union(chance)
    new = edit_union(chance, old)
    merged = merge_exclusive(old, dialects.DRAFT_2020_12)
    before, after, same = (jsonschema_rs.Draft202012Validator(each) for each in (old, new, merged))
    is_kept = covers(SchemaValidator(new), SchemaValidator(old))
    for instance in list_instances(old, new, str(seed)):
        was_valid = before.is_valid(instance)
        assert same.is_valid(instance) == was_valid, (old, instance)
        assert not (is_kept and was_valid) or after.is_valid(instance), (old, new, instance)
