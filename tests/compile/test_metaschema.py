"""Each violation of a meta-schema is explained; another validator finds the violations."""

from __future__ import annotations

import copy
import subprocess
import sys
from typing import Any

from hypothesis import example, given, settings
from hypothesis import strategies as st

from amounts import choose
from stubwright.diagnostics import Place
from stubwright.jsonschema import metaschema
from stubwright.jsonschema.dialects import DIALECTS, Dialect

SCHEMA: dict[str, Any] = {
    "type": ["object", "null"],
    "required": ["a"],
    "properties": {"a": {"enum": [1, 2]}, "b": {"$ref": "#/definitions/c"}, "": True},
    "patternProperties": {"^x": {"maxLength": 3}},
    "additionalProperties": {"items": {"anyOf": [{"minimum": 1, "exclusiveMinimum": 1}, {"not": {"pattern": "a"}}]}},
    "dependencies": {"a": ["b"], "b": {"minProperties": 1}},
    "definitions": {"c": {"multipleOf": 2, "$anchor": "c", "$id": "https://example.com/c"}},
    "$defs": {"d": {"prefixItems": [{"const": 1}], "if": {"uniqueItems": True}, "then": False}},
}
"""Keywords of all dialects; each dialect has some of them."""

JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-2, 2)
    | st.floats(-1, 1)
    | st.sampled_from(["", "a", "a\n", "#a", "string"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "type", "$ref"]), inner, max_size=2)
    ),
    max_leaves=4,
)


def places(value: Any, above: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    """All places below a value."""
    steps = [*value] if isinstance(value, dict) else [*range(len(value))] if isinstance(value, list) else []
    return [place for step in steps for place in ((*above, step), *places(value[step], (*above, step)))]


def changed(place: tuple[Any, ...], value: Any, dialect: Dialect) -> dict[str, Any]:
    schema = {"$schema": dialect.uri, **copy.deepcopy(SCHEMA)}
    if dialect.reference_hides_siblings:
        schema["definitions"]["c"].pop("$anchor")
    here: Any = schema
    for step in place[:-1]:
        here = here[step]
    here[place[-1]] = value
    return schema


@given(st.sampled_from(places(SCHEMA)), JSON, st.sampled_from(DIALECTS))
@example(("definitions", "c", "$anchor"), "a\n", DIALECTS[0])  # a `$` of Python's, but not of JSON Schema's patterns
@settings(max_examples=choose("STUBWRIGHT_WHOLE_PAYLOADS", 80, 1500, 5000))
def test_what_a_meta_schema_refuses_is_an_error_and_nothing_else_is(
    place: tuple[Any, ...], value: Any, dialect: Dialect
) -> None:
    schema = changed(place, value, dialect)
    errors = [
        each for each in metaschema.check("outputSchema", Place("m.yaml"), schema) if each.code in ("SW203", "SW204")
    ]
    assert bool(errors) != metaschema.is_valid(schema, dialect)


def test_nesting_costs_nothing() -> None:
    schema: dict[str, Any] = {"type": "strin"}
    for _ in range(400):
        schema = {"properties": {"a": schema}}
    [error] = metaschema.check("outputSchema", Place("m.yaml"), schema)
    assert error.message == "`strin` is not a JSON Schema type"
    assert isinstance(error.at, Place)
    assert len(error.at.pointer) == 801


def test_the_validator_that_explains_is_loaded_where_something_is_wrong() -> None:
    code = """
import sys
from stubwright.diagnostics import Place
from stubwright.jsonschema import metaschema
assert not [*metaschema.check("outputSchema", Place("m"), {"type": "object"})]
assert "jsonschema" not in sys.modules
assert [*metaschema.check("outputSchema", Place("m"), {"type": "objec"})]
assert "jsonschema" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)
