"""Numbers of any size are compared by their decimal text, as in JSON, with every version of jsonschema-rs."""

from __future__ import annotations

import json
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from stubwright.diff.subsumption.proof import SchemaValidator, covers
from stubwright_runtime.schema.numbers import make_exact_instance, make_exact_schema
from stubwright_runtime.schema.validation import Validator, compile_schema

VERDICTS = {
    "minimum": lambda bound, value: value >= bound,
    "maximum": lambda bound, value: value <= bound,
    "exclusiveMinimum": lambda bound, value: value > bound,
    "exclusiveMaximum": lambda bound, value: value < bound,
    "const": lambda bound, value: value == bound,
    "multipleOf": lambda bound, value: value % bound == 0,
}


def texts() -> st.SearchStrategy[str]:
    """Whole numbers as JSON may write them: 10**23 also as `1e23`, and their neighbors."""
    near = st.builds(
        lambda digit, power, step: digit * 10**power + step, st.integers(1, 9), st.integers(0, 40), st.integers(-1, 1)
    )
    exponents = st.builds("{}e{}".format, st.integers(1, 99), st.integers(0, 40))
    return st.one_of(near.map(str), exponents)


@given(keyword=st.sampled_from(sorted(VERDICTS)), bound=texts(), value=texts())
@example(keyword="maximum", bound="1e23", value="100000000000000000000000")
@example(keyword="minimum", bound="1e23", value="1e23")
@example(keyword="const", bound="1e23", value="1e23")
@example(keyword="multipleOf", bound="10", value="1e23")
def test_verdicts_are_those_of_the_texts(keyword: str, bound: str, value: str) -> None:
    if Fraction(bound) == 0:
        bound = "1"
    schema, instance = json.loads(f'{{"{keyword}": {bound}}}'), json.loads(value)
    wanted = VERDICTS[keyword](Fraction(bound), Fraction(value))
    assert compile_schema(schema, formats=False).is_valid(instance) is wanted
    assert (Validator(schema).find_errors(instance) == []) is wanted
    assert Validator(schema).accepts(instance) is wanted
    below = {"properties": {"n": schema}}
    assert compile_schema(below, formats=False).is_valid({"n": instance}) is wanted


def test_two_texts_of_one_number_are_not_unique() -> None:
    assert not compile_schema({"uniqueItems": True}, formats=False).is_valid(
        json.loads("[1e23, 100000000000000000000000]")
    )


def test_two_texts_of_one_bound_are_the_same_bound() -> None:
    one, other = ({"type": "number", "maximum": json.loads(text)} for text in ("1e23", "100000000000000000000000"))
    assert covers(SchemaValidator(one), SchemaValidator(other))
    assert covers(SchemaValidator(other), SchemaValidator(one))


@pytest.mark.parametrize(
    ("value", "replaced"),
    [
        (1e23, 10**23),
        (-1e23, -(10**23)),
        (float(2**53), 2**53),
        ({"a": [1e23, {"b": 1e22}]}, {"a": [10**23, {"b": 10**22}]}),
    ],
)
def test_large_floats_become_exact(value: Any, replaced: Any) -> None:
    before = json.dumps(value)
    assert json.dumps(make_exact_schema(value)) == json.dumps(replaced)
    assert make_exact_instance(value) == replaced
    assert json.dumps(value) == before  # the given value does not change


@pytest.mark.parametrize("value", [0.1, 1.0, 2.0**53 - 1, float("inf"), True, None, "1e23", 10**30])
def test_other_values_stay(value: Any) -> None:
    for exact in (make_exact_instance, make_exact_schema):
        assert exact([value]) == [value]
        assert type(exact([value])[0]) is type(value)


def test_a_large_float_is_no_integer_in_draft_04() -> None:
    schema = {"$schema": "http://json-schema.org/draft-04/schema#", "type": "integer", "multipleOf": 10}
    assert not compile_schema(schema, formats=False).is_valid(1e23)
    assert compile_schema(schema, formats=False).is_valid(10**23)


@pytest.mark.parametrize(
    ("schema", "value", "line"),
    [
        ({"maximum": 1e22}, 1e23, "arguments: expected at most 10000000000000000000000, got 1e+23"),
        ({"enum": [1e22, "a"]}, 1e23, 'arguments: expected one of 10000000000000000000000, "a", got 1e+23'),
        ({"properties": {"n": {"multipleOf": 3}}}, {"n": 1e23}, "n: expected a multiple of 3, got 1e+23"),
        (
            {"uniqueItems": True},
            [1e23, 1e23],
            "arguments: expected unique items, but arguments[0] and arguments[1] are equal",
        ),
        (
            {"anyOf": [{"const": 1e22}, {"$ref": "#/$defs/x"}], "$defs": {"x": {"maximum": 1e21}}},
            1e23,
            "arguments: expected 10000000000000000000000 or at most 1000000000000000000000, got 1e+23",
        ),
    ],
)
def test_errors_show_the_value_as_it_came(schema: Any, value: Any, line: str) -> None:
    assert Validator(schema).find_errors(value)[0].startswith(line)


def test_schemas_of_any_depth_that_manifests_may_have_are_compiled() -> None:
    schema: Any = {"maximum": 1e23}
    for _ in range(200):
        schema = {"items": schema}
    value: Any = 10**23
    for _ in range(200):
        value = [value]
    assert compile_schema(schema, formats=False).is_valid(value)
