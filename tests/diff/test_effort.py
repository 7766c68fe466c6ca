"""Schemas that `diff` does not pass to the library, because their alternatives multiply."""

from __future__ import annotations

from typing import Any

import pytest

from stubwright.diff.subsumption import proof


def make_conditionals(count: int, **keywords: Any) -> dict[str, Any]:
    """A schema with independent conditionals, which have two alternatives each."""
    conditions = [
        {"if": {"properties": {"k": {"const": number}}, "required": ["k"]}, "then": {"required": [f"r{number}"]}}
        for number in range(count)
    ]
    return {"type": "object", "allOf": conditions, **keywords}


UNION = {"oneOf": [{"const": number} for number in range(100)]}
PAIR = {"anyOf": [{"required": ["a"]}, {"required": ["b"]}]}


@pytest.mark.parametrize(
    ("schema", "is_costly"),
    [
        (make_conditionals(5), False),
        (make_conditionals(6), True),
        ({"properties": {"a": make_conditionals(5), "b": make_conditionals(5)}}, True),
        ({"not": make_conditionals(6)}, True),
        ({"$defs": {"A": PAIR}, "allOf": 6 * [{"$ref": "#/$defs/A"}]}, True),
        ({"dependentSchemas": {name: {"required": ["z"]} for name in "abcde"}}, False),
        ({"dependentSchemas": dict.fromkeys("abcdef", PAIR)}, True),
        (UNION, False),
        ({"allOf": [UNION], "properties": {name: {"anyOf": [UNION, {"type": "null"}]} for name in "abc"}}, False),
        ({"properties": {f"p{n}": {"anyOf": [{"type": "string"}, {"type": "null"}]} for n in range(200)}}, False),
        ({"$defs": {"A": {"allOf": [{"$ref": "#/$defs/A"}, PAIR, PAIR]}}, "$ref": "#/$defs/A"}, True),
        (True, False),
    ],
)
def test_alternatives_that_apply_together_multiply(schema: Any, is_costly: bool) -> None:
    judge = proof.SchemaValidator(schema)
    assert judge.is_costly is is_costly
    assert (judge.canonical is None) is is_costly


def test_a_costly_schema_is_compared_by_cases() -> None:
    wide, narrow = (
        proof.SchemaValidator(make_conditionals(8)),
        proof.SchemaValidator(make_conditionals(8, minProperties=1)),
    )
    assert wide.is_costly
    assert proof.covers(wide, narrow)
    assert not proof.covers(narrow, wide)
