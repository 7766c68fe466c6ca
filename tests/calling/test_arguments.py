"""Command line words as arguments: conversion by the schema, and errors."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import amounts
from stubwright.calling.arguments import ArgumentError, parse
from stubwright.calling.signatures import format_signature

SCHEMA: Final[dict[str, Any]] = {
    "type": "object",
    "properties": {
        "text": {"type": "string"},
        "count": {"type": "integer"},
        "size": {"type": "number"},
        "on": {"type": "boolean"},
        "units": {"enum": ["metric", "imperial", 5, None]},
        "either": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        "open": {"anyOf": [{"const": "auto"}, {"type": "integer"}]},
        "mixed": {"type": ["string", "array"], "items": {"type": "integer"}},
        "tags": {"type": "array", "items": {"type": "string"}},
        "numbers": {"type": "array", "items": {"$ref": "#/$defs/Small"}},
        "place": {"$ref": "#/$defs/Place"},
        "data": {"type": "string", "contentEncoding": "base64"},
        "files": {"type": "array", "items": {"type": "string", "contentEncoding": "base64"}},
        "anything": {},
        "a.b": {"type": "integer"},
        "round": {"$ref": "#/properties/round"},
    },
    "additionalProperties": False,
    "$defs": {
        "Small": {"type": "integer", "maximum": 9},
        "Place": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "floor": {"type": "integer"}},
            "additionalProperties": {"type": "boolean"},
        },
    },
}


def parsed(*words: str, schema: dict[str, Any] = SCHEMA, given: str = "") -> dict[str, Any]:
    return parse(words, schema, lambda path: Path(path).read_bytes(), lambda: given)


@pytest.mark.parametrize(
    ("word", "value"),
    [
        ("text=Paris", "Paris"),
        ("text=5", "5"),
        ("text=", ""),
        ("text=a=b", "a=b"),
        ("text=null", "null"),
        ("text=@@home", "@home"),
        ("text:=null", None),
        ('text:="x"', "x"),
        ("count=5", 5),
        ("count=-5", -5),
        ("count=5.0", 5.0),
        ("count=1e3", 1000.0),
        ("size=5", 5),
        ("size=0.5", 0.5),
        ("on=true", True),
        ("on=false", False),
        ("units=metric", "metric"),
        ("units=5", 5),
        ("units=null", None),
        ("either=null", None),
        ("either=7", 7),
        ("open=auto", "auto"),
        ("open=8", 8),
        ("mixed=text", "text"),
        ("mixed=[1]", [1]),
        ("tags=a", ["a"]),
        ("tags=a,b", ["a,b"]),
        ('tags=["a", "b"]', ["a", "b"]),
        ("tags=[draft]", ["[draft]"]),
        ("numbers=3", [3]),
        ('place={"city": "Paris"}', {"city": "Paris"}),
        ("anything=5", 5),
        ("anything=Paris", "Paris"),
        ("anything=[1, {}]", [1, {}]),
        ("a.b=4", 4),
        ("round=x", "x"),
    ],
)
def test_a_value_is_typed_by_its_schema(word: str, value: Any) -> None:
    (name, got), *others = parsed(word).items()
    assert (name, got, type(got)) == (word.partition("=")[0].removesuffix(":"), value, type(value))
    assert not others


def test_words_come_together() -> None:
    assert parsed("tags=a", "tags=b", 'tags=["c"]') == {"tags": ["a", "b", "c"]}
    assert parsed("place.city=Paris", "place.floor=3", "place.lift=true") == {
        "place": {"city": "Paris", "floor": 3, "lift": True}
    }
    assert parsed('{"count": 1, "on": true}', "count=2") == {"count": 2, "on": True}
    assert parsed("-", "count=2", given='{"count": 1, "text": "x"}') == {"count": 2, "text": "x"}


def test_files_are_read(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_bytes(b"\xef\xbb\xbfDear all,\n")
    (tmp_path / "picture").write_bytes(b"\x89PNG\xff")
    (tmp_path / "place.json").write_text('{"city": "Oslo"}\n')
    assert parsed(f"text=@{tmp_path}/notes.txt") == {"text": "Dear all,\n"}
    assert parsed(f"data=@{tmp_path}/picture") == {"data": "iVBOR/8="}
    assert parsed(f"files=@{tmp_path}/picture") == {"files": ["iVBOR/8="]}
    assert parsed(f"place=@{tmp_path}/place.json") == {"place": {"city": "Oslo"}}
    with pytest.raises(ArgumentError, match="is not valid UTF-8, which `text` requires"):
        parsed(f"text=@{tmp_path}/picture")
    with pytest.raises(ArgumentError, match=r"^`text` cannot be read from `.*/nothing`: No such file or directory$"):
        parsed(f"text=@{tmp_path}/nothing")
    with pytest.raises(ArgumentError, match=r"^`text` cannot be read from `.*`: "):
        parsed(f"text=@{tmp_path}")


@pytest.mark.parametrize(
    ("words", "why"),
    [
        (["Paris"], "`Paris` is not an argument; write NAME=VALUE, such as `location=Paris`"),
        (["=x"], "`=x` is not an argument; write NAME=VALUE, such as `location=Paris`"),
        (["coutn=5"], "there is no argument `coutn`; did you mean `count`?"),
        (["place.city.x=5"], "`place.city.x` must be true or false, not `5`"),
        (["count=soon"], "`count` must be a whole number, not `soon`"),
        (["count=5.5"], "`count` must be a whole number, not `5.5`"),
        (["size=1e400"], "`size` must be a number, not `1e400`"),
        (["size=NaN"], "`size` must be a number, not `NaN`"),
        (["on=yes"], "`on` must be `true` or `false`, not `yes`"),
        (["units=kelvin"], "`units` must be `metric`, `imperial`, `5` or `null`, not `kelvin`"),
        (["place=Paris"], "`place` must be a JSON object, not `Paris`"),
        (["numbers=x"], "`numbers` must be a whole number, not `x`"),
        (["text=a", "text=b"], "`text` is specified twice, but is not a list"),
        (["text:=x"], "`text:=` requires JSON; `x` is not valid JSON"),
        (["place:=5", "place.city=x"], "`place.city` cannot be set, because its parent is not an object"),
        (["text=\udcff"], "`text` contains invalid UTF-8 or an unpaired surrogate, which cannot be sent"),
        (['place.city:="\\ud800"'], "`place` contains invalid UTF-8 or an unpaired surrogate"),
        (['{"count": 1, "count": 2}'], "the argument has a duplicate key, `count`"),
        (['{"place": {"city": "a", "city": "b"}}'], "the argument has a duplicate key, `city`"),
        (['place={"city": "a", "city": "b"}'], "`place` has a duplicate key, `city`"),
        (['place:={"city": "a", "city": "b"}'], "`place` has a duplicate key, `city`"),
        (['anything=[{"a": 1, "a": 2}]'], "`anything` has a duplicate key, `a`"),
        (['count={"a": 1, "a": 2}'], "`count` must be a whole number, not "),
        (['{"size": NaN}'], "the argument is not JSON: NaN is not JSON"),
        (['{"size": 1e400}'], "the argument is not JSON: 1e400 is too large for a number"),
        (["{'a': 1}"], "the argument is not JSON: Expecting property name enclosed in double quotes"),
    ],
)
def test_what_can_be_read_in_no_way_is_refused(words: list[str], why: str) -> None:
    with pytest.raises(ArgumentError) as raised:
        parsed(*words)
    if "place.city.x" in words[0]:
        assert "place.city.x" in str(raised.value)
    else:
        assert str(raised.value).startswith(why)
        assert ("; write {" in str(raised.value)) == ("is not JSON: " in why)


def test_a_text_may_look_like_an_object_with_a_key_twice() -> None:
    assert parsed('text={"a": 1, "a": 2}') == {"text": '{"a": 1, "a": 2}'}


def test_standard_input_is_an_object() -> None:
    with pytest.raises(ArgumentError, match="standard input has a duplicate key, `text`"):
        parsed("-", given='{"text": "a", "text": "b"}')
    with pytest.raises(ArgumentError, match="standard input is not a JSON object"):
        parsed("-", given="[1]")


VALUES: Final = {
    "string": st.text().filter(lambda text: not text.startswith("@")),
    "integer": st.integers(),
    "number": st.floats(allow_nan=False, allow_infinity=False),
    "boolean": st.booleans(),
}
TREES: Final = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=8,
)


@pytest.mark.long
@settings(max_examples=50)
@given(data=st.data(), kind=st.sampled_from(sorted(VALUES)), nullable=st.booleans())
def test_each_value_can_be_said(data: st.DataObject, kind: str, nullable: bool) -> None:
    value = data.draw(VALUES[kind])
    types = [kind, "null"] if nullable and kind != "string" else kind
    schema = {"properties": {"x": {"type": types}}}
    word = value if isinstance(value, str) else json.dumps(value)
    assert parsed(f"x={word}", schema=schema) == {"x": value}
    assert parsed(f"x:={json.dumps(value)}", schema=schema) == {"x": value}


@given(value=TREES, other=st.booleans() | st.none())
@settings(max_examples=amounts.choose("STUBWRIGHT_WHOLE_CORPUS", 35, 100, 100))
def test_any_json_can_be_said(value: Any, other: Any) -> None:
    schema = {"properties": {"x": {"type": "string", "const": other}}}
    assert parsed(f"x:={json.dumps(value)}", schema=schema) == {"x": value}
    assert parsed(json.dumps({"x": value}), schema=schema) == {"x": value}


@given(
    schema=st.recursive(
        st.booleans() | st.text() | st.none(),
        lambda inner: st.dictionaries(
            st.sampled_from(
                ["properties", "x", "type", "enum", "anyOf", "allOf", "$ref", "items", "additionalProperties"]
            ),
            inner | st.lists(inner, max_size=2) | st.sampled_from(["#", "#/properties/x", "string", "object"]),
            max_size=4,
        ),
        max_leaves=12,
    )
)
@settings(max_examples=amounts.choose("STUBWRIGHT_WHOLE_CORPUS", 35, 100, 100))
def test_a_schema_of_any_quality_is_no_crash(schema: Any) -> None:
    with suppress(ArgumentError):
        assert "x" in parsed("x=1", "x.y=2", schema=schema if isinstance(schema, dict) else {})
    assert format_signature({"name": "t", "inputSchema": schema, "outputSchema": schema}).startswith("t(")


@pytest.mark.parametrize(
    ("schema", "word", "notes"),
    [
        ({}, "tagg=work", ["the tool does not declare `tagg`, which is sent anyway; did you mean `tag`?"]),
        ({}, "color=red", []),
        ({"additionalProperties": {"type": "string"}}, "tagg=work", []),  # any name is declared
    ],
)
def test_a_misspelt_argument_of_an_open_schema_is_doubted(schema: dict[str, Any], word: str, notes: list[str]) -> None:
    doubts: list[str] = []
    name, _, value = word.partition("=")
    own = {"type": "object", "properties": {"tag": {"type": "string"}}, **schema}
    assert parse([word], own, lambda path: b"", lambda: "", doubts.append) == {name: value}
    assert doubts == notes
