"""Models of objects with arbitrary keys: any key is an entry, and round trips are lossless."""

from __future__ import annotations

import copy
import json
import pickle
from collections.abc import Mapping, MutableMapping
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

import modules
from stubwright import ir, naming
from stubwright.codegen.models import datamodel

INTEGER = {"type": "integer"}
ITEM = {"type": "object", "properties": {"size": INTEGER}, "required": ["size"], "additionalProperties": False}
COUNTS = {"type": "object", "additionalProperties": INTEGER}
BY_PATTERN = {"type": "object", "patternProperties": {"^[a-z]": INTEGER}, "additionalProperties": False}
ITEMS = {"type": "object", "additionalProperties": ITEM}
STATS = {
    "type": "object",
    "properties": {"total": {"type": "string"}, "kebab-case": {"type": "boolean"}, "items": {"type": "boolean"}},
    "required": ["total"],
    "additionalProperties": INTEGER,
}
TREE = {
    "type": "object",
    "properties": {"name": {"type": "string"}},
    "required": ["name"],
    "additionalProperties": {"$ref": "#"},
}

METHODS = (
    *("items", "keys", "values", "get", "update", "pop", "popitem", "clear", "setdefault", "root", "copy", "json"),
    *("dict", "schema", "model_dump", "model_fields", "model_extra", "model_config", "__class__", "__iter__", "self"),
    *("class", "_others", "__dict__", "__pydantic_extra__", "", " ", "é", "0", "total_", "kebab_case", "items_", "a.b"),
)
"""Keys that something of Python is called, and attributes of the fields above that have other names on the wire."""

KEYS = st.one_of(st.sampled_from(METHODS), st.text(st.characters(exclude_categories=["Cs"]), max_size=6))
NUMBERS = st.integers()
OBJECTS = st.dictionaries(KEYS, NUMBERS, max_size=5)


def ways(model: Any, value: Any) -> Any:
    """Return a model of a value that every serialization returns unchanged."""
    made = model.model_validate(value)
    same = (made, made.model_copy(), made.model_copy(deep=True), copy.deepcopy(made), pickle.loads(pickle.dumps(made)))
    for one in same:
        assert one == made
        assert one.model_dump(mode="json") == value
        assert json.loads(one.model_dump_json()) == value
    assert model.model_validate_json(json.dumps(value)) == made
    return made


def result(schema: Mapping[str, Any], name: str) -> Any:
    """The model of a result with this schema."""
    module, loaded = modules.made({"type": "object"}, schema, name)
    return getattr(loaded, modules.root(module, "output"))


def test_a_map_is_its_entries() -> None:
    model = result(COUNTS, "counts")

    @given(OBJECTS)
    def check(value: dict[str, int]) -> None:
        made = ways(model, value)
        assert isinstance(made, MutableMapping)
        assert (dict(made), {**made}, [*made], len(made)) == (value, value, [*value], len(value))
        assert [*made.items()] == [*value.items()]
        assert [*made.values()] == [*value.values()]
        assert made == value
        assert model(value) == made
        for key in METHODS:
            assert (key in made, made.get(key)) == (key in value, value.get(key))

    check()


def test_a_map_is_written_as_a_dictionary_is() -> None:
    model = result(COUNTS, "written_counts")

    @given(OBJECTS, KEYS, NUMBERS)
    def check(value: dict[str, int], key: str, number: int) -> None:
        made = model(value)
        made[key] = number
        assert made.model_dump(mode="json") == {**value, key: number}
        made.update({key: number + 1})
        assert made.pop(key) == number + 1
        assert made.setdefault(key, 7) == 7
        del made[key]
        assert key not in made
        made.clear()
        assert made.model_dump(mode="json") == {}

    check()


@pytest.mark.parametrize(
    ("schema", "wrong"),
    [(COUNTS, {"a": "x"}), (ITEMS, {"a": {}}), (STATS, {"total": "x", "a": "b"}), (TREE, {"name": "x", "a": 1})],
)
def test_values_are_of_their_type(schema: Mapping[str, Any], wrong: Any) -> None:
    with pytest.raises(ValidationError):
        result(schema, "typed_values").model_validate(wrong)


def test_keys_by_pattern_are_entries() -> None:
    model = result(BY_PATTERN, "by_pattern")

    @given(st.dictionaries(KEYS.filter(lambda key: key[:1].isascii() and key[:1].islower()), NUMBERS, max_size=5))
    def check(value: dict[str, int]) -> None:
        assert dict(ways(model, value)) == value

    check()


def test_values_may_be_models() -> None:
    model = result(ITEMS, "items_by_name")

    @given(OBJECTS)
    def check(sizes: dict[str, int]) -> None:
        made = ways(model, {key: {"size": size} for key, size in sizes.items()})
        assert {key: item.size for key, item in made.items()} == sizes

    check()


def test_fields_stand_beside_entries() -> None:
    model = result(STATS, "stats")
    keys = KEYS.filter(lambda key: key not in ("total", "kebab-case", "items"))

    @given(st.text(st.characters(exclude_categories=["Cs"])), st.booleans(), st.dictionaries(keys, NUMBERS, max_size=5))
    def check(total: str, flag: bool, others: dict[str, int]) -> None:
        made = ways(model, {"total": total, "kebab-case": flag, "items": flag, **others})
        assert (made.total, made.kebab_case) == (total, flag)
        assert dict(MutableMapping.items(made)) == others
        assert ([*made], len(made)) == ([*others], len(others))
        for key in METHODS:
            assert (key in made) == (key in others)
        for key in ("total", "kebab-case", "items"):
            assert key not in made
            with pytest.raises(KeyError, match="is a field; set the attribute"):
                made[key] = 1
        made["kebab_case"] = 3
        assert made.kebab_case is flag
        assert made.model_dump(mode="json") == {
            "total": total,
            "kebab-case": flag,
            "items": flag,
            **others,
            "kebab_case": 3,
        }
        assert model(total=total, kebab_case=flag).model_dump(mode="json") == {"total": total, "kebab-case": flag}

    check()


TREES: st.SearchStrategy[Any] = st.recursive(
    st.builds(lambda name: {"name": name}, st.text("ab")),
    lambda inner: st.builds(
        lambda name, below: {**below, "name": name},
        st.text("ab"),
        st.dictionaries(KEYS.filter(lambda key: key != "name"), inner, max_size=3),
    ),
    max_leaves=6,
)


def test_entries_may_be_what_holds_them() -> None:
    model = result(TREE, "tree")

    @given(TREES)
    def check(value: Any) -> None:
        made = ways(model, value)
        assert made.name == value["name"]
        assert {key: below.name for key, below in made.items()} == {
            key: below["name"] for key, below in value.items() if key != "name"
        }

    check()


def test_entries_may_be_constants_beside_what_holds_them() -> None:
    values = {"anyOf": [{"$ref": "#"}, {"enum": ["a", -1, True]}, {"type": "array", "items": {"const": "it's"}}]}
    model = result({**TREE, "additionalProperties": values}, "tree_of_constants")
    ways(model, {"name": "x", "a": "a", "b": -1, "c": ["it's"], "d": {"name": "y", "e": True}})


@pytest.mark.long
def test_mappings_in_unions_and_in_each_other() -> None:
    closed = {"type": "object", "properties": {"items": {"const": "x"}}, "required": ["items"]}
    nested = {"type": "object", "additionalProperties": {"anyOf": [COUNTS, closed, STATS, {"type": "null"}]}}
    properties = {
        "either": {"anyOf": [COUNTS, ITEMS, {"type": "string"}]},
        "nested": nested,
        "listed": {"type": "array", "items": STATS},
        "pattern": {"type": "object", "patternProperties": {"": {"anyOf": [ITEM, INTEGER]}}},
    }
    module, loaded = modules.made({"type": "object", "properties": properties}, name="maps_in_unions")
    model = getattr(loaded, modules.root(module))
    sized = OBJECTS.map(lambda sizes: {key: {"size": size} for key, size in sizes.items()})
    stats = st.builds(
        lambda total, others: {**others, "total": total},
        st.text("ab"),
        OBJECTS.filter(lambda others: not others.keys() & {"total", "kebab-case", "items"}),
    )
    values = st.fixed_dictionaries(
        {},
        optional={
            "either": st.one_of(OBJECTS, sized, st.text("ab")),
            "nested": st.dictionaries(KEYS, st.one_of(OBJECTS, st.just({"items": "x", "a": 1}), stats, st.none())),
            "listed": st.lists(stats, max_size=3),
            "pattern": st.dictionaries(KEYS, st.one_of(NUMBERS, NUMBERS.map(lambda size: {"size": size}))),
        },
    )

    @given(values)
    def check(value: Any) -> None:
        ways(model, value)

    check()


def test_a_shared_mapping_is_one_class_wherever_it_stands() -> None:
    pointers = {"#/$defs/Counts": "Counts", "#/$defs/Stats": "Stats"}
    shared = (
        ir.SharedSchema("Counts", naming.name_shared("Counts"), modules.schema(COUNTS)),
        ir.SharedSchema("Stats", naming.name_shared("Stats"), modules.schema(STATS)),
    )
    wire = {
        "type": "object",
        "properties": {
            "counts": {"$ref": "#/$defs/Counts"},
            "either": {"anyOf": [{"$ref": "#/$defs/Stats"}, {"$ref": "#/$defs/Counts"}]},
            "by_name": {"type": "object", "additionalProperties": {"$ref": "#/$defs/Stats"}},
        },
        "$defs": {"Counts": COUNTS, "Stats": STATS},
    }
    module = datamodel.make_modules([modules.tool("of_shared", wire, shared=pointers)], datamodel.find_homes(shared))[0]
    made = datamodel.make_shared_modules(shared)
    assert [*made.of] == ["Counts", "Stats"], "the first is for whole results, and a dictionary below the root"
    stats = modules.load(made.of["Stats"], "shared.stats").Stats
    model = modules.load(module, "of_shared").OfSharedInput

    @given(OBJECTS, st.dictionaries(KEYS.filter(lambda key: key not in ("total", "kebab-case", "items")), NUMBERS))
    def check(entries: dict[str, int], others: dict[str, int]) -> None:
        beside = {"total": "x", **others}
        value = {"counts": entries, "either": beside, "by_name": {"get": beside, "total": beside}}
        found = ways(model, value)
        assert (type(found.counts), type(found.either)) == (dict, stats)
        assert type(found.by_name["get"]) is stats
        assert found.counts == entries
        given_back = model(counts=entries, either=stats.model_validate(beside), by_name={"a": stats(total="x")})
        assert given_back.model_dump(mode="json") == {**value, "by_name": {"a": {"total": "x"}}}

    check()
