"""Validation errors that a model can correct in one step."""

from __future__ import annotations

from typing import Any

import pytest

from stubwright_runtime.schema.validation import Validator

DAY = {"type": "string", "format": "date"}
KINDS = {
    "properties": {"pet": {"oneOf": [{"$ref": "#/$defs/Cat"}, {"properties": {"kind": {"enum": ["dog", "puppy"]}}}]}},
    "$defs": {"Cat": {"properties": {"name": {}, "kind": {"const": "cat"}}}},
}

OPTIONAL_NUMBER = {
    "oneOf": [
        {"properties": {"kind": {"const": "card"}, "number": {}}, "required": ["kind", "number"]},
        {"properties": {"kind": {"const": "cash"}}, "required": ["kind"]},
    ]
}

PLACES = {
    "oneOf": [
        {"properties": {key: {}}, "required": [key], "additionalProperties": False} for key in ("address", "point")
    ]
}
LACKING = "(1) address: required, but missing; (2) point: required, but missing"


@pytest.mark.parametrize(
    ("form", "text", "suggestion"),
    [
        ("date", "08/08/2025", "write YYYY-MM-DD, such as 2025-08-08"),
        (
            "date-time",
            "2025-08-08 14:30",
            "write YYYY-MM-DDThh:mm:ss and Z or an offset, such as 2025-08-08T14:30:00Z",
        ),
        ("time", "half past two", "write hh:mm:ss and Z or an offset, such as 14:30:00Z"),
        ("duration", "3 days", "write an ISO 8601 duration, such as P3D or PT1H30M"),
        ("email", "somebody", "write an address, such as name@example.com"),
        ("ipv4", "1.2.3", "write an IPv4 address, such as 192.0.2.1"),
        ("uuid", "7", "write a UUID, such as 123e4567-e89b-12d3-a456-426614174000"),
    ],
)
@pytest.mark.parametrize("exact", [True, False])
def test_a_format_has_an_example(form: str, text: str, suggestion: str, exact: bool) -> None:
    validator = Validator({"type": "string", "format": form}, formats=True, exact=exact)
    assert validator.find_errors(text) == [
        f'arguments: expected the format "{form}", got the string "{text}"; {suggestion}'
    ]
    example = suggestion.rpartition("such as ")[2].partition(" or ")[0]
    assert validator.find_errors(example) == []


@pytest.mark.parametrize(
    ("schema", "value", "expected"),
    [
        (
            {"dependentRequired": {"card": ["address", "name"]}},
            {"card": 1, "name": "n"},
            ['address: required, but missing; "card" requires it'],
        ),
        (
            {"$schema": "http://json-schema.org/draft-07/schema#", "dependencies": {"card": ["address"]}},
            {"card": 1},
            ['address: required, but missing; "card" requires it'],
        ),
        (
            {"properties": {"tags": {"uniqueItems": True}}},
            {"tags": ["a", {"b": 1}, "c", {"b": 1.0}]},
            ["tags: expected unique items, but tags[1] and tags[3] are equal"],
        ),
        ({"uniqueItems": True}, [*range(300), 7], ["arguments: expected unique items, but two are equal"]),
        (
            {"properties": {"city": {}}, "required": ["city"], "additionalProperties": False},
            {"args": {"city": "Bern"}},
            [
                'args: unknown key; send the arguments themselves, not inside "args"',
                'city: required, but missing; send the arguments themselves, not inside "args"',
            ],
        ),
        (
            {"properties": {"city": {}}, "required": ["city"]},
            {"arguments": {"city": "Bern"}},
            ['city: required, but missing; send the arguments themselves, not inside "arguments"'],
        ),
        (
            {"properties": {"city": {}}, "required": ["city"]},
            {"get_weather": {"city": "Bern"}},
            ['city: required, but missing; send the arguments themselves, not inside "get_weather"'],
        ),
        (
            {"properties": {"city": {}}, "required": ["city"]},
            {"get_weather": {"city": "Bern", "town": "Bern"}},
            ["city: required, but missing"],
        ),
        (KINDS, {"pet": {"name": "n"}}, ['pet.kind: required, but missing; expected one of "cat", "dog", "puppy"']),
        (
            OPTIONAL_NUMBER,
            {"kind": "coin"},
            ['kind: expected one of "card", "cash", got the string "coin"'],
        ),
        (
            {"oneOf": [{"properties": {"a": {"const": 1}}}, {"properties": {"b": {"const": 2}}}]},
            {},
            ["arguments: must match exactly one alternative, but matches 1 and 2"],
        ),
        (OPTIONAL_NUMBER, {"number": 1}, ['kind: required, but missing; expected one of "card", "cash"']),
        (PLACES, {"town": "Bern"}, ["town: unknown key", f"arguments: matches none of the 2 alternatives: {LACKING}"]),
        (
            {
                "oneOf": [{"required": ["lat", "lon"]}, {"$ref": "#/$defs/City"}],
                "$defs": {"City": {"required": ["city"]}},
            },
            {"lat": 1, "lon": 2, "city": "Bern"},
            [
                (
                    "arguments: must match exactly one alternative, but matches 1 and 2; "
                    'send only "lat" with "lon" or "city"'
                )
            ],
        ),
        (
            {"oneOf": [{"required": ["date", "lat"]}, {"required": ["date", "city"]}]},
            {"date": "today", "lat": 1, "city": "Bern"},
            ['arguments: must match exactly one alternative, but matches 1 and 2; send only "lat" or "city"'],
        ),
        (
            {"patternProperties": {"^x-": {}, "^y-": {}}, "additionalProperties": False},
            {"z": 1},
            ["z: unknown key; other keys must match ^x- or ^y-"],
        ),
        (
            {"properties": {"day": {"type": "string"}, "city": {"anyOf": [{"type": "string"}]}}, "required": ["city"]},
            {"day": None, "city": None},
            ["city: expected a string, got null", "day: expected a string, got null; omit the key if it has no value"],
        ),
        *(
            (
                {"properties": {"city": {}}, "required": ["city"]},
                {"input": text},
                [f"city: required, but missing{hint}"],
            )
            for text, hint in {
                '{"city": "Bern"}': '; send the arguments themselves, not inside "input"',
                "{city: Bern}": "",
                "Bern": "",
            }.items()
        ),
        (
            {"contains": {"const": "a"}},
            ["b"],
            ['arguments: expected at least 1 item that fits {"const": "a"}, got an array of 1 item'],
        ),
        (
            {"contains": {"const": "a"}, "minContains": 2},
            ["a"],
            ['arguments: expected at least 2 items that fit {"const": "a"}, got an array of 1 item'],
        ),
        (
            {"contains": {"const": "a"}, "maxContains": 1},
            ["a", "a"],
            ['arguments: expected at least 1 and at most 1 item that fits {"const": "a"}, got an array of 2 items'],
        ),
        (
            {"properties": {"city": {}}, "required": ["city"]},
            {"args": {"town": "Bern"}},
            ["city: required, but missing"],
        ),
        (
            {"properties": {"args": {"type": "object"}, "city": {}}, "required": ["city"]},
            {"args": {"city": "Bern"}},
            ["city: required, but missing"],
        ),
    ],
)
def test_a_refusal_says_what_to_change(schema: Any, value: Any, expected: list[str]) -> None:
    assert sorted(Validator(schema).find_errors(value)) == sorted(expected)


def test_a_secret_is_not_described() -> None:
    validator = Validator({"properties": {"day": DAY}}, formats=True, redact=["/day"])
    assert validator.find_errors({"day": "soon"}) == ['day: expected the format "date"']
