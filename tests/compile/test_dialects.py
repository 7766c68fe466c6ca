"""Dialects: detection, and the places of subschemas."""

from __future__ import annotations

from typing import Any

import jsonschema_rs
import pytest

from stubwright.jsonschema import dialects
from stubwright.jsonschema.dialects import DIALECTS, DRAFT_4, DRAFT_6, DRAFT_7, DRAFT_2019_09, DRAFT_2020_12, Dialect


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_each_dialect_is_known_by_its_identifier(dialect: Dialect) -> None:
    plain = dialect.uri.rstrip("#")
    assert dialects.find_dialect({"$schema": plain}) is dialect
    assert dialects.find_dialect({"$schema": f"{plain}#"}) is dialect
    assert jsonschema_rs.meta.is_valid({"$schema": dialect.uri})


@pytest.mark.parametrize(
    "uri",
    [
        "http://json-schema.org/schema#",
        "http://json-schema.org/draft-03/schema#",
        "https://json-schema.org/draft-07/schema#",
        "http://json-schema.org/draft-07/schema##",
        "https://json-schema.org/draft/2020-12/schema/",
        "",
        7,
        None,
        [],
    ],
)
def test_other_identifiers_are_not(uri: Any) -> None:
    assert dialects.find_dialect({"$schema": uri}) is None


def test_without_an_identifier_it_is_2020_12() -> None:
    assert dialects.find_dialect({}) is DRAFT_2020_12
    assert dialects.find_dialect(True) is DRAFT_2020_12
    assert dialects.find_dialect({"type": "object"}, DRAFT_7) is DRAFT_7


def test_where_reusable_schemas_stand() -> None:
    assert [dialect.defs for dialect in DIALECTS] == ["$defs", "$defs", "definitions", "definitions", "definitions"]
    assert [dialect.reference_hides_siblings for dialect in DIALECTS] == [False, False, True, True, True]


@pytest.mark.parametrize("dialect", DIALECTS, ids=lambda dialect: dialect.name)
def test_the_keywords_are_those_that_the_meta_schema_has_a_rule_for(dialect: Dialect) -> None:
    wrong: list[Any] = [-1.5, "", {"x": 1.5}, [1.5]]
    ruled = {
        keyword
        for keyword in dialects.KEYWORDS - {"$schema"}
        if not all(jsonschema_rs.meta.is_valid({"$schema": dialect.uri, keyword: value}) for value in wrong)
    }
    assert dialect.keywords - ruled <= {"$schema", "const", "default", "$ref", "format"}
    assert ruled - {"$recursiveAnchor", "$recursiveRef"} <= dialect.keywords  # 2020-12 still has rules for these two


def test_newer_keywords() -> None:
    assert DRAFT_2020_12.keywords - DRAFT_2019_09.keywords == {"$dynamicAnchor", "$dynamicRef", "prefixItems"}
    assert DRAFT_2019_09.keywords - DRAFT_2020_12.keywords == {"$recursiveAnchor", "$recursiveRef", "additionalItems"}
    assert DRAFT_7.keywords - DRAFT_2019_09.keywords == set()
    assert DRAFT_4.keywords - DRAFT_6.keywords == {"id"}


def test_subschemas_come_in_the_order_of_the_source() -> None:
    schema = {
        "properties": {
            "enum": {"enum": [{"type": "x"}], "default": {"type": "x"}, "examples": [{"type": "x"}]},
            "properties": {"items": {"const": {"items": {}}}},
        },
        "allOf": [{"not": False}, True],
        "x-schema": {"type": "x"},
        "$defs": {"a": {"additionalProperties": {"prefixItems": [{}]}}},
        "definitions": {"b": 3},
    }
    assert [pointer for pointer, _ in dialects.iterate_subschemas(schema, DRAFT_2020_12)] == [
        (),
        ("properties", "enum"),
        ("properties", "properties"),
        ("properties", "properties", "items"),
        ("allOf", 0),
        ("allOf", 0, "not"),
        ("allOf", 1),
        ("$defs", "a"),
        ("$defs", "a", "additionalProperties"),
        ("$defs", "a", "additionalProperties", "prefixItems", 0),
        ("definitions", "b"),
    ]


def test_what_a_dialect_does_not_have_holds_no_schemas() -> None:
    schema = {"prefixItems": [{}], "items": [{}, {}], "if": {}, "dependencies": {"a": ["b"], "c": {}}, "id": {}}
    inner = {
        dialect.name: [pointer for pointer, _ in dialects.iterate_subschemas(schema, dialect)][1:]
        for dialect in (DRAFT_2020_12, DRAFT_7, DRAFT_4)
    }
    assert inner == {
        "2020-12": [("prefixItems", 0), ("if",), ("dependencies", "c")],
        "draft-07": [("items", 0), ("items", 1), ("if",), ("dependencies", "c")],
        "draft-04": [("items", 0), ("items", 1), ("dependencies", "c")],
    }


@pytest.mark.parametrize(
    "broken", [3, None, [], {"properties": [1]}, {"items": 3}, {"allOf": {}}, {"$defs": {"a": None}}]
)
def test_broken_schemas_are_walked_too(broken: Any) -> None:
    assert next(iter(dialects.iterate_subschemas(broken, DRAFT_2020_12))) == ((), broken)
    assert len(list(dialects.iterate_subschemas(broken, DRAFT_7))) <= 2


def test_depth_is_no_matter() -> None:
    schema: Any = {}
    for _ in range(5_000):
        schema = {"not": schema}
    assert sum(1 for _ in dialects.iterate_subschemas(schema, DRAFT_2020_12)) == 5_001
