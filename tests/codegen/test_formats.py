"""Texts with a format in models of `python: {formats: rich}`: parsed values, and a lossless round trip."""

from __future__ import annotations

import asyncio
import copy
import datetime as dt
import json
import pickle
import zoneinfo
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import ModuleType
from typing import Any
from uuid import UUID

import jsonschema_rs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import AnyUrl, ValidationError
from pydantic_core import PydanticSerializationError

import amounts
import instances
import modules
from amounts import choose
from formatted import LIKELY, STAYS_TEXT, TYPES, VALUES, instance, places, schema_of
from packages import generate, imported, manifest, tool

EXAMPLES = choose("STUBWRIGHT_WHOLE_CORPUS", 35, 100, 100)
"""Random values of each kind of text."""


@pytest.fixture(scope="module")
def models() -> Mapping[str, Any]:
    """The model of each format."""
    made = {}
    for form in TYPES:
        name = f"with_{form.replace('-', '_')}"
        module, loaded = modules.made(places(schema_of(form)), name=name, rich=True)
        made[form] = getattr(loaded, modules.root(module))
    return made


def outcomes(model: Any, value: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    """What a model gives for a value, in each way out of it."""
    made = model.model_validate(value)
    yield "model_dump", made.model_dump(mode="json")
    yield "model_dump_json", json.loads(made.model_dump_json())
    yield "model_validate_json", model.model_validate_json(json.dumps(value)).model_dump(mode="json")
    for way, other in (
        ("model_copy", made.model_copy()),
        ("model_copy(deep=True)", made.model_copy(deep=True)),
        ("copy", copy.copy(made)),
        ("deepcopy", copy.deepcopy(made)),
        ("pickle", pickle.loads(pickle.dumps(made))),
        ("attributes", model(**{name: getattr(made, name) for name in made.model_fields_set})),
    ):
        assert other == made, way
        yield way, other.model_dump(mode="json")


TEXTS = [(form, text) for form, texts in instances.TEXTS.items() for text in texts]


@pytest.mark.parametrize(("form", "text"), TEXTS)
def test_a_text_is_read_and_goes_out_again(form: str, text: str, models: Mapping[str, Any]) -> None:
    value = instance(text)
    for way, given_back in outcomes(models[form], value):
        assert given_back == value, way
    made = models[form].model_validate(value)
    expected = str if text in STAYS_TEXT[form] else TYPES[form]
    for found in (made.plain, made.nullable, made.several[2], made.by_name[text], made.pair[0], made.below.x):
        assert isinstance(found, expected), repr(found)
    for found in (made.or_number, made.or_const, made.or_thing.x, made.or_list[0], made.kebab_case, made["beside"]):
        assert isinstance(found, expected), repr(found)
    assert isinstance(made.list_or_any[2], expected)
    for more in ({"or_any": text}, {"list_or_any": {"y": [text], "z": text}}, {"list_or_any": text}):
        for way, given_back in outcomes(models[form], {"plain": text, **more}):
            assert given_back == {"plain": text, **more}, way


@pytest.mark.parametrize("form", TYPES)
def test_what_else_an_alternative_takes_stays_what_it_is(form: str, models: Mapping[str, Any]) -> None:
    values: tuple[dict[str, Any], ...] = (
        {"plain": "", "or_number": 1, "or_const": "never", "or_thing": None, "or_list": {"a": 1}},
        {"plain": "x", "or_number": 1.5, "or_const": True, "or_thing": {"x": "1", "y": ["2026-01-01"]}, "or_list": []},
        {"plain": "x", "nullable": None, "several": [], "by_name": {}},
    )
    for value in values:
        for way, given_back in outcomes(models[form], value):
            assert given_back == value, way


@pytest.mark.parametrize("form", amounts.sample(TYPES, 1))
def test_any_text_goes_out_as_it_came(form: str, models: Mapping[str, Any]) -> None:
    valid = jsonschema_rs.validator_for(schema_of(form), validate_formats=True)

    @settings(max_examples=EXAMPLES)
    @given(st.one_of(LIKELY[form], st.sampled_from(instances.TEXTS[form]), st.text()))
    def check(text: str) -> None:
        if not modules_take(text):
            return
        value = {"plain": text, "several": [text], "or_number": text, "or_thing": {"kind": "thing", "x": text}}
        for way, given_back in outcomes(models[form], value):
            assert given_back == value, way
        found = models[form].model_validate(value).plain
        if isinstance(found, dt.date | dt.time | UUID):
            assert valid.is_valid(text), "what is read as a type is of the format"

    check()


def modules_take(text: str) -> bool:
    """Whether pydantic takes a text: half of a surrogate pair is none to it."""
    return not any("\ud800" <= char <= "\udfff" for char in text)


@pytest.mark.parametrize("form", TYPES)
def test_any_value_goes_out_as_the_format_wants_it(form: str, models: Mapping[str, Any]) -> None:
    from stubwright_runtime.client.core.arguments import to_json

    valid = jsonschema_rs.validator_for(schema_of(form), validate_formats=True)
    model = models[form]

    @settings(max_examples=EXAMPLES)
    @given(VALUES[form])
    def check(value: Any) -> None:
        made = model(plain=value, several=[value], by_name={"a": value}, or_number=value, or_thing=value)
        out = made.model_dump(mode="json")
        text = out["plain"]
        assert valid.is_valid(text), text
        assert out == {
            "plain": text,
            "several": [text],
            "by_name": {"a": text},
            "or_number": text,
            "or_thing": text,
        }
        assert json.loads(made.model_dump_json()) == out
        assert to_json({"a": value, "b": [value], "c": {"d": value}, "e": made}) == {
            "a": text,
            "b": [text],
            "c": {"d": text},
            "e": out,
        }
        again = model.model_validate(out)
        assert isinstance(again.plain, TYPES[form])
        assert in_utc(again.plain) == in_utc(value)
        assert again.model_dump(mode="json") == out

    check()


def in_utc(value: Any) -> Any:
    """The same time in UTC: Python finds no two zones equal in an hour that comes twice."""
    return value.astimezone(dt.UTC) if isinstance(value, dt.datetime) else value


NAIVE = [dt.datetime(2026, 11, 22, 10), dt.time(10), dt.time(10, tzinfo=zoneinfo.ZoneInfo("Europe/Paris"))]


@pytest.mark.parametrize("value", NAIVE)
def test_a_time_without_an_offset_is_refused_where_it_is_given(value: Any, models: Mapping[str, Any]) -> None:
    from stubwright_runtime.client.core.arguments import to_json

    model = models["date-time" if isinstance(value, dt.datetime) else "time"]
    with pytest.raises(ValidationError, match=r"plain[\s\S]*has no offset from UTC.*set `tzinfo=datetime.UTC`"):
        model(plain=value)
    with pytest.raises(ValueError, match=r"a\.b\[0\]: .* has no offset from UTC"):
        to_json({"a": {"b": [value]}})
    made = model(plain="x")
    made.plain = value
    with pytest.raises(PydanticSerializationError, match="has no offset from UTC"):
        made.model_dump(mode="json")


def test_an_offset_that_rfc_3339_cannot_write_becomes_utc(models: Mapping[str, Any]) -> None:
    amsterdam = dt.datetime(1900, 1, 1, tzinfo=zoneinfo.ZoneInfo("Europe/Amsterdam"))
    odd = dt.timezone(dt.timedelta(minutes=1, seconds=30))
    made = models["date-time"](plain=amsterdam, several=[dt.datetime(2026, 1, 1, tzinfo=odd)])
    assert made.model_dump(mode="json")["several"] == ["2025-12-31T23:58:30Z"]
    assert models["date-time"].model_validate(made.model_dump(mode="json")).plain == amsterdam
    for wrong in (dt.datetime(1, 1, 1, tzinfo=odd), dt.time(tzinfo=odd)):
        with pytest.raises(ValidationError, match="is not a whole number of minutes"):
            models["time" if isinstance(wrong, dt.time) else "date-time"](plain=wrong)


def test_a_value_of_another_type_is_refused(models: Mapping[str, Any]) -> None:
    now = dt.datetime(2026, 11, 22, tzinfo=dt.UTC)
    for form, wrong in (("date", now), ("date-time", now.date()), ("uuid", b"x"), ("base64", UUID(int=1)), ("uri", 1)):
        with pytest.raises(ValidationError):
            models[form](plain=wrong)


def test_what_is_made_of_a_time_has_a_text_of_its_own(models: Mapping[str, Any]) -> None:
    made = models["date-time"].model_validate({"plain": "2026-11-22t10:00:00.10+00:00"})
    for value, text in (
        (made.plain, "2026-11-22t10:00:00.10+00:00"),
        (made.plain + dt.timedelta(hours=1), "2026-11-22T11:00:00.100000Z"),
        (made.plain.replace(microsecond=0), "2026-11-22T10:00:00Z"),
        (made.plain.astimezone(dt.timezone(dt.timedelta(hours=2))), "2026-11-22T12:00:00.100000+02:00"),
    ):
        for same in (value, copy.copy(value), copy.deepcopy(value), pickle.loads(pickle.dumps(value))):
            assert models["date-time"](plain=same).model_dump(mode="json") == {"plain": text}


def test_defaults_are_values_too() -> None:
    text = schema_of("date-time")
    written = "2026-11-22t10:00:00z"
    thing = {"type": "object", "properties": {"x": {"type": "integer"}}, "required": ["x"]}
    properties = {
        "plain": {**text, "default": written},
        "nullable": {**text, "type": ["string", "null"], "default": written},
        "several": {"type": "array", "items": text, "default": [written, "never"]},
        "by_name": {"type": "object", "additionalProperties": text, "default": {"a": written}},
        "either": {"anyOf": [{"type": "array", "items": text}, text, thing, {"type": "object"}], "default": written},
        "listed": {"anyOf": [{"type": "array", "items": text}, thing, {"type": "integer"}], "default": [written]},
        "no": {**text, "default": "never"},
    }
    module, loaded = modules.made({"type": "object", "properties": properties}, name="with_defaults", rich=True)
    model = getattr(loaded, modules.root(module))
    for made in (model(), model.model_validate({})):
        found = (made.plain, made.nullable, made.several[0], made.by_name["a"], made.either, made.listed[0])
        assert set(found) == {dt.datetime(2026, 11, 22, 10, tzinfo=dt.UTC)}
        assert (made.several[1], made.no) == ("never", "never")
        assert made.model_dump(mode="json") == {}
        made.several.append(dt.datetime(2026, 1, 1, tzinfo=dt.UTC))
        made.plain = made.plain.replace(hour=11)
        assert made.model_dump(mode="json") == {
            "plain": "2026-11-22T11:00:00Z",
            "several": [written, "never", "2026-01-01T00:00:00Z"],
        }
    assert model().model_dump(mode="json") == {}


def test_without_the_option_texts_are_texts() -> None:
    for form, texts in instances.TEXTS.items():
        module, loaded = modules.made(places(schema_of(form)), name=f"plain_{form.replace('-', '_')}")
        for text in texts:
            made = getattr(loaded, modules.root(module)).model_validate(instance(text))
            assert made.plain == made.below.x == made["beside"] == text
            assert made.model_dump(mode="json") == instance(text)


NOTE = {"type": "object", "properties": {form: schema_of(form) for form in TYPES}, "required": ["date"]}
HANDLERS = """
from __future__ import annotations

from {package} import Context, EchoInput, EchoOutput


class Handlers:
    async def echo(self, args: EchoInput, ctx: Context) -> EchoOutput:
        self.seen = args
        return EchoOutput(
            date=args.date, date_time=args.date_time, time=args.time, uuid=args.uuid, uri=args.uri, base64=args.base64
        )
"""


def test_values_go_through_a_client_and_a_server(tmp_path: Path) -> None:
    value = manifest([tool("echo", inputSchema=NOTE, outputSchema=NOTE)], name="rich", python={"formats": "rich"})
    package = generate(tmp_path, value)
    with imported(tmp_path, package) as made:
        asyncio.run(exchanged(made, HANDLERS.format(package=package)))


async def exchanged(made: ModuleType, source: str) -> None:
    scope: dict[str, Any] = {}
    exec(source, scope)
    handlers = scope["Handlers"]()
    zone = dt.timezone(dt.timedelta(hours=1))
    sent = {
        "date": dt.date(2026, 11, 22),
        "date_time": dt.datetime(2026, 11, 22, 10, tzinfo=zone),
        "time": dt.time(10, tzinfo=dt.UTC),
        "uuid": UUID(int=7),
        "uri": AnyUrl("https://example.com/a"),
        "base64": b"hi\x00",
    }
    wire = {
        "date": "2026-11-22",
        "date-time": "2026-11-22T10:00:00+01:00",
        "time": "10:00:00Z",
        "uuid": "00000000-0000-0000-0000-000000000007",
        "uri": "https://example.com/a",
        "base64": "aGkA",
    }
    async with made.RichClient.connect(made.build_server(handlers)) as client:
        result = await client.echo(**sent)
        assert {name: getattr(handlers.seen, name) for name in sent} == sent
        assert {name: getattr(result, name) for name in sent} == sent
        assert result.model_dump(mode="json") == wire
        raw = await client.raw.call_tool("echo", wire)
        assert raw.structured_content == wire
        odd = {"date": "2026-02-30", "date-time": "2026-12-31T23:59:60Z", "uri": "a b", "base64": "aGk"}
        assert (await client.raw.call_tool("echo", odd)).structured_content == odd
        result = await client.echo(date="2026-02-30", uuid="{x}")
        assert (result.date, result.uuid) == ("2026-02-30", "{x}")
        with pytest.raises(ValueError, match="date-time: 2026-11-22T00:00:00 has no offset from UTC"):
            await client.echo(date=sent["date"], date_time=dt.datetime(2026, 11, 22))
