"""Nested alternatives: validation cost is linear in the value, and bounded where it could grow faster."""

from __future__ import annotations

import itertools
import time
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import amounts
import modules
import trees
from stubwright_runtime.schema import validation
from stubwright_runtime.schema.complexity import MOST_VISITS, Cost
from stubwright_runtime.schema.error_tree import ErrorTree, ShallowSchema
from stubwright_runtime.schema.validation import Validator

DEPTHS = (5, 25, 50, 95)
TAGGED = ({"kind": "a"}, {"kind": "z"})
LOOSE = ({"of_a": "x"}, {"of_a": 1, "of_b": 1, "of_c": 1})
DIALECTS = {
    "2020-12": "https://json-schema.org/draft/2020-12/schema",
    "2019-09": "https://json-schema.org/draft/2019-09/schema",
    "07": "http://json-schema.org/draft-07/schema#",
    "06": "http://json-schema.org/draft-06/schema#",
    "04": "http://json-schema.org/draft-04/schema#",
}


def seconds(work: Callable[[Any], object], value: Any) -> float:
    started = time.process_time()
    work(value)
    return time.process_time() - started


@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
@pytest.mark.parametrize("depth", DEPTHS)
def test_a_tagged_tree_is_checked_and_explained_at_any_depth(keyword: str, depth: int) -> None:
    validator = Validator(trees.schema(keyword))
    assert validator.find_errors(trees.tree(depth, {"kind": "a"}, kind="b")) == []
    place = "node" + ".children[0]" * (depth - 1)
    assert validator.find_errors(trees.tree(depth, {"kind": "z"}, kind="b")) == [
        f'{place}.kind: expected one of "a", "b", "c", got the string "z"'
    ]


@pytest.mark.parametrize("depth", DEPTHS)
def test_a_tree_whose_kinds_nothing_tells_apart_is_checked_and_explained_at_any_depth(depth: int) -> None:
    validator = Validator(trees.schema("anyOf", tagged=False))
    assert validator.find_errors(trees.tree(depth, {"of_a": "x"})) == []
    (line,) = validator.find_errors(trees.tree(depth, LOOSE[1]))
    place = "node" + ".children[0]" * (depth - 1)
    assert line.startswith(
        f"{place}: matches none of the 3 alternatives: (1) {place}.of_a: expected a string, got 1; (2)"
    )


@pytest.mark.parametrize(("tagged", "leaves"), [(True, TAGGED), (False, LOOSE)])
def test_the_work_grows_with_the_depth(tagged: bool, leaves: Any) -> None:
    """Four times the depth may take sixteen times as long and more, but not three to its power."""
    validator = Validator(trees.schema("anyOf", tagged=tagged))
    for leaf in leaves:
        node = {"kind": "b"} if tagged else {}
        shallow, deep = (trees.tree(depth, leaf, **node) for depth in (24, 96))
        validator.find_errors(shallow)
        once = seconds(validator.find_errors, shallow)
        assert seconds(validator.find_errors, deep) < 1000 * max(once, 0.01)


@pytest.mark.parametrize("said", DIALECTS.values(), ids=DIALECTS)
def test_every_dialect_is_explained_at_depth(said: str) -> None:
    node = {"anyOf": [{"$ref": "#/definitions/Leaf"}, {"$ref": "#/definitions/Branch"}]}
    schema = {
        "$schema": said,
        "$ref": "#/definitions/Node",
        "definitions": {
            "Node": node,
            "Leaf": {"type": "string"},
            "Branch": {"type": "array", "items": {"$ref": "#/definitions/Node"}, "minItems": 1},
        },
    }
    value: Any = 1
    for _ in range(90):
        value = [value]
    assert Validator(schema).find_errors(value) == [
        f"arguments{'[0]' * 90}: expected a string or an array, got 1",
    ]


def test_references_into_alternatives_are_followed() -> None:
    """As converters of TypeScript's types write them."""
    schema = {
        "anyOf": [
            {"type": "object", "properties": {"and": {"type": "array", "items": {"$ref": "#"}}}, "required": ["and"]},
            {"type": "object", "properties": {"or": {"$ref": "#/anyOf/0/properties/and"}}, "required": ["or"]},
            {"type": "object", "properties": {"is": {"type": "string"}}, "required": ["is"]},
        ]
    }
    value: Any = {"is": 1}
    for _ in range(40):
        value = {"or": [value]}
    assert Validator(schema).find_errors(value) == [f"{'or[0].' * 40}is: expected a string, got 1"]


@pytest.mark.parametrize(
    "more",
    [{"unevaluatedProperties": False}, {"$id": "https://example.com/tree"}, {"$dynamicAnchor": "tree"}],
)
def test_what_cannot_be_explained_is_still_refused(more: Any) -> None:
    schema = trees.schema("anyOf", **more)
    assert Validator(schema).find_errors(trees.tree(60, {"kind": "a"}, kind="b")) == []
    assert Validator(schema).find_errors(trees.tree(60, {"kind": "z"}, kind="b")) != []


NODES = st.recursive(
    st.fixed_dictionaries({"kind": st.sampled_from(["a", "b", "c", "z", 1])})
    | st.sampled_from([{}, {"of_a": "x"}, {"of_b": 1}, 1, None]),
    lambda inner: st.fixed_dictionaries(
        {"children": st.lists(inner, max_size=3)}, optional={"kind": st.sampled_from(["a", "b", "z"])}
    ),
    max_leaves=12,
)


@pytest.mark.parametrize("tagged", [True, False])
@pytest.mark.parametrize("keyword", ["anyOf", "oneOf"])
@settings(max_examples=amounts.choose("STUBWRIGHT_WHOLE_CORPUS", 10, 20, 20))
@given(node=NODES)
def test_the_second_schema_finds_errors_where_the_first_does(tagged: bool, keyword: str, node: Any) -> None:
    schema = trees.schema(keyword, tagged=tagged)
    validator = Validator(schema)
    cuts = ShallowSchema(schema, lambda one: validation.compile_schema(one, formats=False))
    value = {"node": node}
    assert validation.compile_schema(cuts.schema, formats=False).is_valid(value) == (not validator.find_errors(value))
    assert validator.accepts(value) == (not validator.find_errors(value))
    found = {error.path for error in ErrorTree(cuts, value).find_errors()}
    assert found == {error.path for error in validator._find_errors(value, 10**9)}


@pytest.mark.parametrize("length", [20, 60])
def test_what_would_take_too_long_is_refused_at_once(length: int) -> None:
    validator = Validator(trees.chain(length))
    started = time.process_time()
    assert validator.find_errors(trees.path(length)) == [
        "arguments: too complex: the schema can match it in so many ways that validation would take too long"
    ]
    assert not validator.accepts(trees.path(length))
    assert time.process_time() - started < 5
    assert validator.find_error_paths(trees.path(length)) == []


def test_what_is_shallow_is_not_refused_where_the_schema_is_deep() -> None:
    shallow: Any = {"node": {"node": {"node": {}}}}
    assert Validator(trees.chain(60)).find_errors(shallow) == []
    assert Validator(trees.chain(60)).find_errors(trees.path(2)) == ["node.node.node: expected an object, got 1"]


def cost_of(schema: Any) -> Cost:
    return Cost(schema, lambda one: validation.compile_schema(one, formats=False))


def test_the_work_is_reckoned_as_the_validator_does_it() -> None:
    """Each level of the chain multiplies; a schema that holds itself is looked up."""
    counts = [cost_of(trees.chain(12)).count_visits(trees.path(depth), 10**9) for depth in (4, 5, 6)]
    assert all(2 < deeper / count < 4 for count, deeper in itertools.pairwise(counts))
    tree = cost_of(trees.schema())
    assert not tree.is_explosive
    counts = [tree.count_visits(trees.tree(depth, {"kind": "a"}, kind="a"), 10**9) for depth in (20, 40, 80)]
    assert all(deeper < 2.1 * count for count, deeper in itertools.pairwise(counts))
    again = [tree.count_visits(trees.tree(depth, {"kind": "a"}), MOST_VISITS, remembering=False) for depth in (20, 80)]
    assert all(count > MOST_VISITS for count in again)


def test_a_schema_whose_places_are_one_object_is_reckoned_as_its_copy() -> None:
    """As YAML's aliases make it."""
    node = {"$ref": "#/$defs/Node"}
    kinds = [
        {"type": "object", "properties": {"op": {"const": op}, "of": node, "and": node}, "required": ["op", "of"]}
        for op in ("not", "all")
    ]
    schema = {
        "type": "object",
        "properties": {"q": node},
        "$defs": {"Node": {"oneOf": [*kinds, {"type": "object", "required": ["is"]}]}},
    }
    assert cost_of(schema).is_exponential
    value: Any = {"op": "all", "of": 1}
    for _ in range(60):
        value = {"op": "not", "of": value}
    assert Validator(schema).find_errors({"q": value})


def test_the_reckoning_is_quicker_than_what_it_reckons() -> None:
    schema = trees.schema()
    many = {"node": {"kind": "a", "children": [{"kind": "b", "children": [{"kind": "c"}]} for _ in range(5_000)]}}
    tree = cost_of(schema)
    started = time.process_time()
    few = tree.count_visits({"node": {"kind": "a", "children": many["node"]["children"][:1]}}, 10**9)
    assert tree.count_visits(many, 10**9) > 1_000 * few
    assert time.process_time() - started < 5
    wide = {"type": "object", "additionalProperties": {"$ref": "#"}, "patternProperties": {"^[a-m]": {"$ref": "#"}}}
    assert cost_of(wide).count_visits({str(number): {"a": {}, "z": {}} for number in range(1000)}, 10**9) < 10_000


def test_all_errors_are_asked_for_up_to_so_many_visits() -> None:
    tree, value = cost_of(trees.schema()), trees.tree(8, {"kind": "z"})
    visits = tree.count_visits(value, 10**9, remembering=False)
    assert visits > 2_000
    assert [tree.can_list_errors(value, visits - 2_000 + more) for more in (-1, 0, 1)] == [False, True, True]
    flat = cost_of({"type": "object"})
    assert not flat.is_exponential
    assert flat.can_list_errors({"a": [1] * 10_000}, 0)


@pytest.mark.parametrize(("pattern", "key", "matches"), [("^a", "a", True), ("^a", "b", False), ("(", "b", True)])
def test_a_pattern_counts_for_the_keys_that_it_matches(pattern: str, key: str, matches: bool) -> None:
    """One that the validator does not take may match anything."""
    inner = {"allOf": [{"type": "object"}] * 3}
    cost = cost_of({"patternProperties": {pattern: inner}})
    assert cost.count_visits({key: {}}, 10**9) == (1 + 4 if matches else 1)


def test_reckoning_runs_no_pattern_for_ever() -> None:
    schema = {**trees.schema(), "patternProperties": {"^(a+)+$": {"$ref": "#/$defs/Node"}}}
    assert Validator(schema).find_errors({"node": {"kind": "z"}, "a" * 60 + "!": 1}) == [
        'node.kind: expected one of "a", "b", "c", got the string "z"'
    ]


@pytest.mark.parametrize("value", [1, [{}] * 5, {"a": [1]}])
def test_a_choice_of_itself_has_an_end(value: Any) -> None:
    itself = {"$ref": "#/$defs/A"}
    schema = {"$defs": {"A": {"anyOf": [{"type": "string", **itself}, {"type": "string", "allOf": [itself]}]}}}
    line, *_ = Validator({**schema, **itself}).find_errors(value)
    assert line.startswith("arguments: ")


def test_a_large_value_is_looked_at_a_few_times_only() -> None:
    leaves = [{"kind": "a", "children": []} for _ in range(60_000)] + [{"kind": "z"}]
    looks: list[int] = []

    class Counted(ShallowSchema):
        def find_errors(self, number: int, value: Any) -> Any:
            looks.append(number)
            return super().find_errors(number, value)

    validator = Validator(trees.schema())
    validator._shallow = Counted(trees.schema(), lambda one: validation.compile_schema(one, formats=False))
    assert validator.find_errors({"node": {"kind": "a", "children": leaves}})
    assert 0 < len(looks) <= 4


@pytest.mark.parametrize(("tagged", "leaf"), [(True, {"kind": "c"}), (False, {"of_b": "x"})])
def test_models_are_made_at_any_depth(tagged: bool, leaf: Any) -> None:
    module, loaded = modules.made(trees.schema("anyOf", tagged=tagged), name=f"trees_{tagged}".lower())
    model = getattr(loaded, module.names[0])
    node = {"kind": "b"} if tagged else {}
    took = {}
    for depth in (24, 96):
        value = trees.tree(depth, leaf, **node)
        started = time.process_time()
        made = model.model_validate(value)
        took[depth] = time.process_time() - started
        assert made.model_dump(mode="json") == value
        below = made.node
        for _ in range(depth - 1):
            below = below.children[0]
        assert type(below).__name__.endswith("C" if tagged else "B")
    assert took[96] < 100 * max(took[24], 0.01)


def test_an_object_that_stands_twice_in_a_value_becomes_two_models() -> None:
    module, loaded = modules.made(trees.schema("anyOf", tagged=False), name="trees_twice")
    leaf = {"of_a": "x"}
    made = getattr(loaded, module.names[0]).model_validate({"node": {"children": [leaf, leaf, {"children": [leaf]}]}})
    first, second, third = made.node.children
    assert len({id(first), id(second), id(third.children[0])}) == 3


def test_the_alternative_with_the_most_fields_is_taken() -> None:
    one, two = ({"type": "object", "properties": {key: {} for key in keys}} for keys in ("a", "abc"))
    nested = {"type": "object", "properties": {"x": {"anyOf": [one, two]}, "y": {"anyOf": [{"type": "null"}, two]}}}
    module, loaded = modules.made(nested, name="most_fields")
    made = getattr(loaded, module.names[0]).model_validate({"x": {"a": 1, "b": 2}, "y": None})
    assert "b" in type(made.x).model_fields
    assert made.y is None
    again = getattr(loaded, module.names[0]).model_validate({"x": {"a": 1}})
    assert "b" not in type(again.x).model_fields


def test_a_class_around_a_value_counts_as_no_field() -> None:
    """The object of the model that names its key is taken, and not the map of any keys, as by pydantic itself."""
    schema = {
        "type": "object",
        "properties": {
            "it": {
                "anyOf": [
                    {"type": "object", "additionalProperties": {"$ref": "#/$defs/Any"}},
                    {"type": "object", "properties": {"b": {}}},
                ]
            }
        },
        "$defs": {"Any": {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/Any"}}]}},
    }
    module, loaded = modules.made(schema, name="classes_around")
    made = getattr(loaded, module.names[0]).model_validate({"it": {"b": 1}})
    assert made.it.b == 1


def test_a_schema_within_a_schema_of_ours_is_explained() -> None:
    """As `check` does for defaults, whose references resolve in the complete schema."""
    root = {**trees.schema(), "$id": "stubwright:schema"}
    schema = {"$defs": {"root": root}, "$ref": "stubwright:schema#"}
    (line,) = Validator(schema).find_errors(trees.tree(60, {"kind": "a", "children": 1}, kind="b"))
    assert line.endswith("children: expected an array, got 1")
