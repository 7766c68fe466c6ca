"""Violations: the schema decides, and each line has the location, the expectation and the nearest match."""

from __future__ import annotations

import time
from typing import Any

import pytest

from stubwright_runtime.schema.validation import Validator

DRAFT_7 = "http://json-schema.org/draft-07/schema#"

WEATHER = {
    "type": "object",
    "properties": {
        "location": {"type": "string", "minLength": 1},
        "days": {"type": "integer", "minimum": 1},
        "units": {"enum": ["metric", "imperial"]},
        "api_key": {"type": "string", "pattern": "^key-"},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["location"],
    "additionalProperties": False,
}
NOTHING = {"type": "object", "additionalProperties": False}
NOT_HERE = "additionalProperties: not allowed here"
OF_NAMES = {"properties": {"propertyNames": {"x": 1}}}
DEEP_NOT_HERE = "properties.propertyNames: not allowed here"
SHAPE = {
    "oneOf": [
        {"properties": {"kind": {"const": "circle"}, "r": {"type": "number"}}, "required": ["kind", "r"]},
        {"properties": {"kind": {"const": "square"}, "a": {"type": "number"}}, "required": ["kind", "a"]},
    ]
}


@pytest.mark.parametrize(
    ("schema", "value", "lines"),
    [
        (WEATHER, {"location": "Paris", "days": 1.0}, []),
        (WEATHER, {}, ["location: required, but missing"]),
        (
            WEATHER,
            {"Location": "x"},
            [
                'Location: unknown key; did you mean "location"?',
                'location: required, but missing; "Location" may be a misspelling of it',
            ],
        ),
        (
            WEATHER,
            {"location": "", "days": "3", "units": "metrik"},
            [
                'location: expected at least 1 character, got the string ""',
                'days: expected an integer, got the string "3"',
                'units: expected one of "metric", "imperial", got the string "metrik"; did you mean "metric"?',
            ],
        ),
        (WEATHER, {"location": "x", "tags": ["a", 1]}, ["tags[1]: expected a string, got 1"]),
        (WEATHER, {"location": "x", "api_key": "hunter2"}, ["api_key: expected a match for the pattern ^key-"]),
        (WEATHER, [], ["arguments: expected an object, got an array of 0 items"]),
        ({"properties": {"a b": False}}, {"a b": 1}, ['arguments["a b"]: not allowed here']),
        (NOTHING, {"x": 1, "a b": 2}, ["x: unknown key", 'arguments["a b"]: unknown key']),
        ({"propertyNames": False}, {"x": 1}, ["x: unknown key"]),
        ({"unevaluatedProperties": False}, {"x": 1}, ["x: unknown key"]),
        ({"$schema": DRAFT_7, **NOTHING}, {"x": 1}, ["x: unknown key"]),
        ({"properties": {"a": NOTHING}}, {"a": {"x": 1}}, ["a.x: unknown key"]),
        ({"items": {"$ref": "#/$defs/n"}, "$defs": {"n": NOTHING}}, [{"x": 1}], ["arguments[0].x: unknown key"]),
        ({"anyOf": [NOTHING, {"type": "string"}]}, {"x": 1}, ["x: unknown key"]),
        ({"if": {}, "then": NOTHING}, {"x": 1}, ["x: unknown key"]),
        ({"dependentSchemas": {"x": NOTHING}}, {"x": 1}, ["x: unknown key"]),
        ({"properties": {"additionalProperties": False}}, {"additionalProperties": {"x": 1}}, [NOT_HERE]),
        ({"properties": {"properties": {"properties": {"propertyNames": False}}}}, OF_NAMES, [DEEP_NOT_HERE]),
        (
            {"anyOf": [{"type": "integer"}, {"type": "null"}]},
            "x",
            ['arguments: expected an integer or null, got the string "x"'],
        ),
        (
            WEATHER,
            {"location": "x", "tags": "[1, 2]"},
            ['tags: expected an array, got the string "[1, 2]"; send the array itself, not a string with its JSON'],
        ),
        (WEATHER, {"location": "x", "tags": '{"a": 1}'}, ['tags: expected an array, got the string "{\\"a\\": 1}"']),
        (WEATHER, {"location": "x", "tags": "[a, b"}, ['tags: expected an array, got the string "[a, b"']),
        (
            {"properties": {"a": {"anyOf": [{"type": "object"}, {"type": "null"}]}}},
            {"a": " {}"},
            ['a: expected an object or null, got the string " {}"; send the object itself, not a string with its JSON'],
        ),
        (
            {"type": ["boolean", "object"]},
            "true",
            ['arguments: expected a boolean or an object, got the string "true"'],
        ),
        (SHAPE, {"kind": "square", "a": "1"}, ['a: expected a number, got the string "1"']),
        (SHAPE, {"kind": "oval"}, ['kind: expected one of "circle", "square", got the string "oval"']),
        (
            SHAPE,
            {"kind": "Square"},
            ['kind: expected one of "circle", "square", got the string "Square"; did you mean "square"?'],
        ),
        (SHAPE, {"r": 1}, ['kind: required, but missing; expected one of "circle", "square"']),
        (
            {"anyOf": [{"required": ["a", "b"]}, {"required": ["c", "d"]}]},
            {},
            [
                (
                    "arguments: matches none of the 2 alternatives: "
                    "(1) a: required, but missing; (2) c: required, but missing"
                )
            ],
        ),
        (
            {"oneOf": [{}, {"type": "string"}]},
            "x",
            ["arguments: must match exactly one alternative, but matches 1 and 2"],
        ),
        ({}, {"n": [float("inf")]}, ["n[0]: expected a JSON value, got inf"]),
        ({}, {1: {2, 3}}, ['arguments["1"]: expected a JSON value, got a value of type set']),
        ({}, "\ud800", ["arguments: contains a lone surrogate, which is not a character"]),
        ({"const": 2**53 + 1}, 2**53, ["arguments: expected 9007199254740993, got 9007199254740992"]),
        (
            {"$schema": "http://json-schema.org/draft-04/schema#", "minimum": 3, "exclusiveMinimum": True},
            3,
            ["arguments: expected more than 3, got 3"],
        ),
    ],
)
def test_lines(schema: Any, value: Any, lines: list[str]) -> None:
    assert Validator(schema, redact=["/api_key"]).find_errors(value) == lines
    assert Validator(schema).accepts(value) is (not lines)


@pytest.mark.parametrize(
    "beside",
    [{}, {"allOf": [True]}, {"allOf": [True, True]}, {"allOf": [True, {"properties": {}}]}],
    ids=["no keyword", "no place", "no keywords there", "no name"],
)
def test_a_schema_with_a_base_of_its_own_is_explained_whatever_the_root_has_there(beside: Any) -> None:
    """The library gives the place of what failed in the schema with the base; `City` would be known there."""
    city = {"properties": {"city": {"type": "string"}}, "required": ["city"], "additionalProperties": False}
    based = {"$id": "https://example.com/based", "allOf": [True, {"properties": {"at": city}}]}
    schema = {"properties": {"x": {"$ref": based["$id"]}}, "$defs": {"based": based}}
    value = {"x": {"at": {"City": "Paris"}}}
    hint = '; "City" may be a misspelling of it'
    missing, unknown = f"x.at.city: required, but missing{hint}", "x.at.City: unknown key"
    assert {*Validator({**schema, **beside}).find_errors(value)} == {missing, unknown}


def test_a_text_that_is_nested_too_deeply_to_be_read_gets_no_hint() -> None:
    (line,) = Validator({"type": "array"}).find_errors("[" * 100_000)
    assert line.startswith("arguments: expected an array, got the string")
    assert "itself" not in line


def test_at_most_ten_lines_and_a_count() -> None:
    lines = Validator({"items": {"type": "string"}}).find_errors([1] * 12, "result")
    assert lines[:2] == ["result[0]: expected a string, got 1", "result[1]: expected a string, got 1"]
    assert lines[10:] == ["… and 2 more"]


@pytest.mark.parametrize("pointer", ["/", "/a/", "/a//b"])
def test_a_secret_below_an_empty_key_is_not_echoed(pointer: str) -> None:
    schema = {"type": ["object", "integer"], "additionalProperties": {"$ref": "#"}}
    value: Any = "hunter2"
    for step in reversed(pointer.split("/")[1:]):
        value = {step: value}
    [line] = Validator(schema, redact=[pointer]).find_errors(value)
    assert "hunter2" not in line


def test_nothing_below_a_secret_is_shown() -> None:
    validator = Validator({"properties": {"s": {"additionalProperties": {"type": "integer"}}}}, redact=["/s"])
    assert validator.find_errors({"s": {"secret key": "secret value"}}) == ["s: expected an integer"]
    closed = {"properties": {"a": {}, "b": {}}, "required": ["a", "b"], "additionalProperties": False}
    validator = Validator({"properties": {"s": closed}}, redact=["/s"])
    assert {*validator.find_errors({"s": {"secret key": "secret value"}})} == {
        "s: has unknown keys",
        "s: a required key is missing",
    }


def test_a_text_in_the_place_of_what_holds_a_secret_is_not_shown() -> None:
    """Models write objects as JSON in a string."""
    validator = Validator({"properties": {"s": {"type": "object"}, "t": {"type": "object"}}}, redact=["/s/key"])
    assert validator.find_errors({"s": '{"key": "hunter2"}', "t": "x"}) == [
        "s: expected an object",
        't: expected an object, got the string "x"',
    ]


def test_long_values_are_cut() -> None:
    (line,) = Validator({"type": "integer"}).find_errors("x" * 1000)
    assert line == f'arguments: expected an integer, got the string "{"x" * 58}…'


def test_a_runaway_pattern_is_a_violation() -> None:
    validator = Validator({"properties": {"p": {"pattern": r"^(?:(a|aa|aaa)+)+(?!x)\1c$"}}})
    started = time.process_time()
    assert validator.find_errors({"p": "a" * 40}) == [
        f'p: expected a value that can be checked against the pattern in bounded time, got the string "{"a" * 40}"'
    ]
    assert time.process_time() - started < 1


def test_many_violations_take_no_time() -> None:
    started = time.process_time()
    lines = Validator({"items": {"type": "string"}}).find_errors([1] * 300_000)
    assert lines == ["arguments[0]: expected a string, got 1"]
    assert time.process_time() - started < 1


def test_formats_are_annotations_unless_asserted() -> None:
    for dialect in ("https://json-schema.org/draft/2020-12/schema", "http://json-schema.org/draft-07/schema#"):
        schema = {"$schema": dialect, "format": "date"}
        assert Validator(schema).find_errors("soon") == []
        assert Validator(schema, formats=True).find_errors("soon") == [
            'arguments: expected the format "date", got the string "soon"; write YYYY-MM-DD, such as 2025-08-08'
        ]


def test_nothing_is_fetched() -> None:
    with pytest.raises(ValueError, match="Retrieval is disabled"):
        Validator({"$ref": "https://example.com/schema.json"})


@pytest.mark.parametrize("key", ["01", "1", "0", "00"])
def test_a_secret_below_a_key_of_digits_is_not_shown(key: str) -> None:
    schema = {"type": "object", "properties": {key: {"type": "string", "pattern": "^a"}}}
    [line] = Validator(schema, redact=[f"/{key}"]).find_errors({key: "hunter2"})
    assert "hunter2" not in line


@pytest.mark.parametrize(
    ("pattern", "good", "bad"),
    [
        (r"^[^]$", ["a", "\n"], ["", "ab"]),
        (r"^[]$", [], ["", "a"]),
        (r"^(?<n>a|b)\k<n>$", ["aa", "bb"], ["ab"]),
        (r"^(x)(?<n>a)(?:\()\k<n>1$", ["xa(a1"], ["xa(x1", "xa(xa1"]),
        (r"^\0$", ["\0"], ["0"]),
        (r"^[\b\0]$", ["\x08", "\0"], ["b"]),
        (r"^[\w-.]+$", ["a-b.c"], ["a b"]),
        (r"^[.-\w]+$", ["a-."], ["!"]),
        (r"^[\w-[]+$", ["a-["], ["]"]),
        (r"^{a}$", ["{a}"], ["a"]),
        (r"^[\p{Lu}-\d]\p{Lu}\u{41}\x42\u0043[^]$", ["-AABC!", "ÄÄABC?"], ["aAABC!", "-AABC"]),
        (r"^a{,3}$", ["a{,3}"], ["aaa"]),
        (r"^\{[\d-\s]{1,2}\}$", ["{1-}"], ["{abc}", "1-"]),
    ],
)
def test_patterns_that_javascript_takes(pattern: str, good: list[str], bad: list[str]) -> None:
    validator = Validator({"pattern": pattern})
    keys = Validator({"patternProperties": {pattern: False}})
    below = Validator({"properties": {"const": {"items": [{"pattern": pattern}]}}, "$schema": DRAFT_7})
    for value in good:
        assert validator.find_errors(value) == []
        assert keys.find_errors({value: 1}) != []
        assert below.find_errors({"const": [value]}) == []
    for value in bad:
        assert validator.find_errors(value) != []
        assert keys.find_errors({value: 1}) == []
        assert below.find_errors({"const": [value]}) != []


def test_what_is_no_pattern_stays_as_it_is() -> None:
    data = {"pattern": r"[\w-.]"}
    validator = Validator({"const": data, "pattern": r"[\w-.]", "allOf": [{"pattern": r"^\p{Letter}[[:alpha:]]$"}]})
    assert validator.find_errors(data) == []
    assert validator.find_errors({"pattern": r"[\w\-.]"}) != []


@pytest.mark.parametrize("pattern", [r"^a\Z", "[", "(", r"\h", r"[\w-.](", r"\k<n>"])
def test_patterns_that_nobody_takes(pattern: str) -> None:
    with pytest.raises(ValueError, match="regex"):
        Validator({"pattern": pattern})


@pytest.mark.parametrize(
    "name", ["\u8ba2\u5355", "a b", "MarkPropDef<(Gradient|string|null)>", "x[0]", "100%", 'a^`{}"\\']
)
@pytest.mark.parametrize("dialect", [DRAFT_7, "https://json-schema.org/draft/2020-12/schema"])
def test_references_may_have_characters_that_a_uri_has_not(name: str, dialect: str) -> None:
    schema = {
        "$schema": dialect,
        "properties": {"a": {"$ref": f"#/$defs/{name}"}},
        "$defs": {name: {"type": "integer"}},
    }
    assert Validator(schema).find_errors({"a": "x"}) == ['a: expected an integer, got the string "x"']


@pytest.mark.parametrize("key", ["", "0", "01", "+1", "1" * 5000])
def test_keys_that_the_library_tells_otherwise(key: str) -> None:
    inner = {"type": "object", "properties": {key: {"type": "integer"}}}
    schema = {"properties": {"a": inner}}
    quoted = f'"{key}"' if len(key) < 60 else f'"{key[:58]}…'
    assert Validator(schema).find_errors({"a": {key: "x"}}) == [f'a[{quoted}]: expected an integer, got the string "x"']
    (line,) = Validator(schema, redact=[f"/a/{key}"]).find_errors({"a": {key: "secret"}})
    assert "secret" not in line


def test_numbers_of_keys_are_told_in_words() -> None:
    few = Validator({"minProperties": 2}).find_errors({"a": 1})
    assert few == ["arguments: expected at least 2 keys, got an object with 1 key"]
    many = Validator({"properties": {"o": {"maxProperties": 1}}}).find_errors({"o": {"a": 1, "b": 2, "c": 3}})
    assert many == ["o: expected at most 1 key, got an object with 3 keys"]
