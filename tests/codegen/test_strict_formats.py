"""Texts with a format under `python: {formats: strict}`: values without an exact representation violate the schema."""

from __future__ import annotations

import asyncio
import datetime as dt
import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import mcp
import mcp_types as types
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

import amounts
import instances
import modules
from amounts import choose
from formatted import LIKELY, STAYS_TEXT, TYPES, VALUES, instance, places, schema_of
from packages import generate, imported, manifest, tool
from stubwright.jsonschema import instances as making
from stubwright_runtime.client.core.errors import InvalidResult, ToolFailed
from stubwright_runtime.schema.suggestions import suggest_form
from stubwright_runtime.schema.validation import Validator

EXAMPLES = choose("STUBWRIGHT_WHOLE_CORPUS", 35, 100, 100)
"""Random values of each kind of text."""

ALSO_REFUSED: Mapping[str, frozenset[str]] = {"uri": frozenset({"data:text/plain,a b"})}
"""What a type can hold, but is not of its format."""

VALIDATORS = {form: Validator(places(schema_of(form)), exact=True) for form in TYPES}


@pytest.fixture(scope="module")
def models() -> Mapping[str, Any]:
    """The model of each format."""
    made = {}
    for form in TYPES:
        name = f"strict_{form.replace('-', '_')}"
        module, loaded = modules.made(places(schema_of(form)), name=name, exact=True)
        made[form] = getattr(loaded, modules.root(module))
    return made


def strict(text: str) -> dict[str, Any]:
    """Return an object with a text at all places, without the other texts."""
    value = instance(text)
    return {**value, "several": [text, text], "list_or_any": [text, text]}


TEXTS = [(form, text) for form, texts in instances.TEXTS.items() for text in texts]


@pytest.mark.parametrize(("form", "text"), TEXTS)
def test_a_text_is_read_as_its_type_or_refused(form: str, text: str, models: Mapping[str, Any]) -> None:
    value = strict(text)
    if text in STAYS_TEXT[form] | ALSO_REFUSED.get(form, frozenset()):
        refused = VALIDATORS[form].find_error_paths(value)
        assert {path[0] for path in refused} == {*value} - {"or_any", "or_thing"}  # which have another alternative
    else:
        assert VALIDATORS[form].find_errors(value) == []
        made = models[form].model_validate(value)
        for found in (made.plain, made.nullable, *made.several, made.by_name[text], made.pair[0], made.below.x):
            assert isinstance(found, TYPES[form]), repr(found)
        for found in (made.or_number, made.or_const, made.or_thing.x, made.or_list[0], made.kebab_case, made["beside"]):
            assert isinstance(found, TYPES[form]), repr(found)
        assert made.model_dump(mode="json") == json.loads(made.model_dump_json()) == value
    if text in STAYS_TEXT[form]:
        with pytest.raises(ValidationError, match="not a string that"):
            models[form].model_validate({"plain": text})


@pytest.mark.parametrize("form", amounts.sample(TYPES, 2))
def test_what_a_schema_accepts_is_of_the_type_and_goes_out_as_it_came(form: str, models: Mapping[str, Any]) -> None:
    validator = Validator(schema_of(form), exact=True)

    @settings(max_examples=EXAMPLES)
    @given(st.one_of(LIKELY[form], st.sampled_from(instances.TEXTS[form]), st.text()))
    def check(text: str) -> None:
        if validator.accepts(text):
            made = models[form].model_validate({"plain": text})
            assert isinstance(made.plain, TYPES[form])
            assert made.model_dump(mode="json") == {"plain": text}

    check()


@pytest.mark.parametrize("form", amounts.sample(TYPES, 2))
def test_what_a_type_writes_is_accepted(form: str, models: Mapping[str, Any]) -> None:
    @settings(max_examples=EXAMPLES)
    @given(VALUES[form])
    def check(value: Any) -> None:
        out = models[form](plain=value, several=[value], or_number=value).model_dump(mode="json")
        assert VALIDATORS[form].find_errors(out) == []

    check()


@pytest.mark.parametrize("form", TYPES)
def test_other_alternatives_stay_what_they_are(form: str, models: Mapping[str, Any]) -> None:
    text = instances.TEXTS[form][0]
    values: tuple[dict[str, Any], ...] = (
        {"or_number": 1, "or_const": "never", "or_thing": None, "or_list": {"a": 1}},
        {"or_number": 1.5, "or_const": True, "or_thing": {"x": "1", "y": [text]}, "or_list": []},
        {"nullable": None, "several": [], "by_name": {}},
    )
    for value in values:
        assert VALIDATORS[form].find_errors({"plain": text, **value}) == []
        made = models[form].model_validate({"plain": text, **value})
        assert made.model_dump(mode="json") == {"plain": text, **value}


@pytest.mark.parametrize(
    ("form", "text", "words"),
    [
        ("date", "0000-01-01", "; the year must be 0001 or later"),
        ("date", "2026-02-30", f"; {suggest_form('date')}"),
        ("date-time", "0000-01-01T00:00:00Z", "; the year must be 0001 or later"),
        ("date-time", "2026-12-31T23:59:60Z", "; leap seconds are not accepted"),
        ("date-time", "2026-11-22T10:00:00.1234567Z", "; a fraction of a second may have at most six digits"),
        ("date-time", "2026-11-22T10:00:00", f"; {suggest_form('date-time')}"),
        ("time", "23:59:60Z", "; leap seconds are not accepted"),
        ("time", "10:00:00.1234567+01:00", "; a fraction of a second may have at most six digits"),
        ("uuid", "9B2C0A52-6F0E-4A77-8A39-5D3D3F1F5C11", "; write it in lower case"),
        ("uuid", "{9b2c0a52-6f0e-4a77-8a39-5d3d3f1f5c11}", f"; {suggest_form('uuid')}"),
        ("uri", "https://EXAMPLE.com", "; write it as https://example.com/"),
        ("uri", "a/b", f"; {suggest_form('uri')}"),
        ("uri", f"https://EXAMPLE.com/{'a' * 300}", ""),
    ],
)
def test_a_violation_says_how_to_write_it(form: str, text: str, words: str) -> None:
    schema = {"type": "object", "properties": {"x": schema_of(form)}}
    (line,) = Validator(schema, exact=True).find_errors({"x": text})
    assert line.startswith(f'x: expected the format "{form}", got the string "')
    assert line.partition('";')[2] == words.removeprefix(";")
    either = {"properties": {"x": {"anyOf": [schema_of(form), {"type": "integer"}]}}}
    (line,) = Validator(either, exact=True).find_errors({"x": text})
    assert line.startswith(f'x: expected the format "{form}" or an integer, got the string "')
    assert line.endswith(words)
    assert Validator(schema, exact=True, redact=["/x"]).find_errors({"x": text}) == [f'x: expected the format "{form}"']


def test_base64_is_asserted_where_the_dialect_has_encodings() -> None:
    text = {"properties": {"x": schema_of("base64")}}
    (line,) = Validator(text, exact=True).find_errors({"x": "aGk"})
    assert line.startswith('x: expected base64, got the string "aGk"; it must have padding, no line breaks,')
    for draft, is_asserted in (("04", False), ("07", True)):
        validator = Validator({"$schema": f"http://json-schema.org/draft-{draft}/schema#", **text}, exact=True)
        assert validator.accepts({"x": "aGk"}) != is_asserted
    other = {"properties": {"x": {"type": "string", "contentEncoding": "base32"}}}
    assert Validator(other, exact=True).accepts({"x": "aGk"})


@pytest.mark.parametrize("form", ["email", "ipv4", "duration", "regex", "made-up"])
def test_a_format_without_a_type_is_a_note_unless_the_manifest_asserts_it(form: str) -> None:
    schema = {"properties": {"x": {"format": form}, "day": {"format": "date"}}}
    assert Validator(schema, exact=True).accepts({"x": "("})
    assert Validator(schema, exact=True, formats=True).accepts({"x": "("}) == (form == "made-up")
    meta_schema = {"$ref": "https://json-schema.org/draft/2020-12/schema"}
    assert Validator(meta_schema, exact=True).accepts({"pattern": "("})
    for formats in (False, True):
        assert not Validator(schema, exact=True, formats=formats).accepts({"day": "0000-01-01"})


def test_a_default_is_of_the_type_or_none() -> None:
    text, written = schema_of("date-time"), "2026-11-22t10:00:00z"
    properties = {
        "plain": {**text, "default": written},
        "nullable": {**text, "type": ["string", "null"], "default": written},
        "several": {"type": "array", "items": text, "default": [written]},
        "either": {"anyOf": [{"type": "array", "items": text}, text, {"type": "object"}], "default": written},
        "wrong": {**text, "default": "2026-12-31T23:59:60Z"},
    }
    module, loaded = modules.made({"type": "object", "properties": properties}, name="strict_defaults", exact=True)
    for made in (getattr(loaded, modules.root(module))(), getattr(loaded, modules.root(module)).model_validate({})):
        found = (made.plain, made.nullable, made.several[0], made.either)
        assert set(found) == {dt.datetime(2026, 11, 22, 10, tzinfo=dt.UTC)}
        assert made.wrong is None
        assert made.model_dump(mode="json") == {}


@pytest.mark.parametrize("form", TYPES)
def test_mocks_make_texts_of_the_types(form: str) -> None:
    schema = {"type": "object", "properties": {"x": schema_of(form)}, "required": ["x"]}
    made = {making.make(schema, str(seed), exact=True)["x"] for seed in range(20)}
    assert all(Validator(schema_of(form), exact=True).accepts(text) for text in made)


NOTE = {"type": "object", "properties": {form: schema_of(form) for form in TYPES}, "required": ["date"]}
HANDLERS = """
from __future__ import annotations

from {package} import Context, EchoInput, EchoOutput, LaterContext, LaterInput, LaterOutput


class Handlers:
    def __init__(self) -> None:
        self.seen = []

    async def echo(self, args: EchoInput, ctx: Context) -> EchoOutput:
        self.seen.append(args)
        return EchoOutput.model_validate(args.model_dump(mode="json"))

    async def later(self, args: LaterInput, ctx: LaterContext) -> object:
        if args.raw is not None:
            return dict(date=args.raw)
        answer = await ctx.ask.day()
        return LaterOutput(date=answer.day)
"""
QUESTION = {
    "message": "Which day?",
    "schema": {"type": "object", "properties": {"day": {"type": "string", "format": "date"}}, "required": ["day"]},
}
TOOLS = [
    tool("echo", inputSchema=NOTE, outputSchema=NOTE),
    tool(
        "later",
        inputSchema={"type": "object", "properties": {"raw": {"type": "string"}}},
        outputSchema=NOTE,
        stubwright={"ask": {"day": QUESTION}},
    ),
]
INEXACT = {
    "date": ("0000-01-01", "the year must be 0001 or later"),
    "date-time": ("2026-12-31T23:59:60Z", "leap seconds are not accepted"),
    "uuid": ("9B2C0A52-6F0E-4A77-8A39-5D3D3F1F5C11", "write it in lower case"),
}


def test_a_server_and_a_client_refuse_what_is_not_exact(tmp_path: Path) -> None:
    strict_folder, lenient_folder = tmp_path / "strict", tmp_path / "lenient"
    for folder in (strict_folder, lenient_folder):
        folder.mkdir()
    package = generate(strict_folder, manifest(TOOLS, name="strict", python={"formats": "strict"}))
    lenient = generate(lenient_folder, manifest(TOOLS, name="lenient"))
    with imported(strict_folder, package) as made, imported(lenient_folder, lenient) as other:
        asyncio.run(exchanged(made, handlers_of(package), other.build_server(handlers_of(lenient))))


def handlers_of(package: str) -> Any:
    scope: dict[str, Any] = {}
    exec(HANDLERS.format(package=package), scope)
    return scope["Handlers"]()


async def exchanged(made: ModuleType, handlers: Any, lenient: Any) -> None:
    server = made.build_server(handlers)
    day, now = dt.date(2026, 11, 22), dt.datetime(2026, 11, 22, tzinfo=dt.UTC)
    async with made.StrictClient.connect(server) as client:
        listed = (await client.raw.list_tools()).tools[0]
        assert listed.input_schema == NOTE
        result = await client.echo(date=day, date_time=now)
        assert (result.date, result.date_time) == (day, now)
        assert len(handlers.seen) == 1
        for form, (text, words) in INEXACT.items():
            refused = await client.raw.call_tool("echo", {"date": "2026-11-22", form: text})
            assert refused.is_error
            assert f'expected the format "{form}", got the string "{text}"; {words}' in refused.content[0].text
        assert len(handlers.seen) == 1
        with pytest.raises(ToolFailed, match="does not match its output schema"):
            await client.later(raw="0000-01-01")
    async with made.StrictClient.connect(lenient) as client:
        assert (await client.later(raw="2026-11-22")).date == day
        with pytest.raises(InvalidResult, match=r"0000-01-01.*the year must be 0001 or later"):
            await client.later(raw="0000-01-01")
    answers: Iterator[Any] = iter([{"day": "0000-01-01"}, {"day": "2026-11-22"}])
    asked: list[str] = []

    async def answer(context: Any, params: types.ElicitRequestParams) -> types.ElicitResult:
        asked.append(params.message)
        return types.ElicitResult(action="accept", content=next(answers))

    async with mcp.Client(server, elicitation_callback=answer) as person:
        done = await person.call_tool("later")
    assert done.structured_content == {"date": "2026-11-22"}
    assert "the year must be 0001 or later" in asked[1]
