"""Strings with a format, strings that their types cannot represent, and schemas with a format at each location."""

from __future__ import annotations

import base64
import datetime as dt
from collections.abc import Mapping
from typing import Any
from uuid import UUID

from hypothesis import strategies as st
from pydantic import AnyUrl

import instances

TYPES: Mapping[str, type[Any]] = {
    "date": dt.date,
    "date-time": dt.datetime,
    "time": dt.time,
    "uuid": UUID,
    "uri": AnyUrl,
    "base64": bytes,
}
STAYS_TEXT: Mapping[str, frozenset[str]] = {
    "date": frozenset({"0000-01-01", "2026-02-30", "2026-1-2", "20261122", "2026-W47-7"}),
    "date-time": frozenset(
        {
            "2026-11-22T10:00:00.123456789Z",
            "2026-12-31T23:59:60Z",
            "2026-11-22T24:00:00Z",
            "2026-11-22T10:00:00+05:60",
            "2026-11-22T10:00:00+24:00",
            "0000-01-01T00:00:00Z",
            "2026-11-22 10:00:00Z",
            "2026-11-22T10:00:00",
            "2026-11-22T10:00Z",
            "2026-11-22",
        }
    ),
    "time": frozenset({"10:00:00.1234567Z", "23:59:60Z", "24:00:00Z", "10:00:00", "10:00Z"}),
    "uuid": frozenset(instances.TEXTS["uuid"][1:]),
    "uri": frozenset(
        {
            "https://example.com/a b",
            "https://EXAMPLE.com/%7Ea?q#f",
            "https://example.com:443/",
            "https://bücher.example/",
            "https://xn--bcher-kva.example/ü",
            "file:///a/./b",
            "//example.com/a",
            "a/b",
        }
    ),
    "base64": frozenset({"aGk", "aGk=\n", "aG\nk=", "aGl=", "-_-_", " aGk=", "a", "====", "aGk=aGk="}),
}
"""Texts of `instances.TEXTS` that the type cannot represent, or not exactly."""


def schema_of(form: str) -> dict[str, Any]:
    return {"type": "string", **({"contentEncoding": form} if form == "base64" else {"format": form})}


def places(text: dict[str, Any]) -> dict[str, Any]:
    """Return a schema with a string's schema at each location that can have a type."""
    thing = {"type": "object", "properties": {"x": text, "kind": {"const": "thing"}}, "required": ["kind"]}
    other = {"type": "object", "properties": {"x": {"type": "string"}, "y": {"type": "array", "items": text}}}
    return {
        "type": "object",
        "properties": {
            "plain": text,
            "nullable": {**text, "type": ["string", "null"]},
            "several": {"type": "array", "items": text},
            "by_name": {"type": "object", "additionalProperties": text},
            "pair": {"type": "array", "prefixItems": [text, {"type": "integer"}], "minItems": 2, "items": False},
            "or_number": {"anyOf": [{"type": "number"}, text]},
            "or_const": {"anyOf": [{"const": "never"}, text, {"type": "boolean"}]},
            "or_thing": {"anyOf": [text, thing, other, {"type": "null"}]},
            "or_list": {"anyOf": [{"type": "array", "items": text}, text, {"type": "object"}]},
            "below": thing,
            "kebab-case": text,
            "or_any": {"anyOf": [text, {}]},
            "list_or_any": {"items": text, "properties": {"y": {"type": "array", "items": text}}},
        },
        "required": ["plain"],
        "additionalProperties": text,
    }


def instance(text: str) -> dict[str, Any]:
    """Return an object with a string at each of these locations."""
    thing = {"kind": "thing", "x": text}
    return {
        "plain": text,
        "nullable": text,
        "several": [text, "never", text],
        "by_name": {"a": text, text: text, "items": text},
        "pair": [text, 1],
        "or_number": text,
        "or_const": text,
        "or_thing": thing,
        "or_list": [text],
        "below": thing,
        "kebab-case": text,
        "beside": text,
        "or_any": [{"a": text}, text],
        "list_or_any": [text, "never", text],
    }


LIKELY = {
    "date": st.from_regex(r"\d{4}-[01]\d-[0-3]\d", fullmatch=True),
    "time": st.from_regex(r"[012]\d:[0-6]\d:[0-6]\d(\.\d{0,9})?([Zz]|[+-][012]\d:[0-6]\d)?", fullmatch=True),
    "date-time": st.from_regex(
        r"\d{4}-[01]\d-[0-3]\d[Tt ][012]\d:[0-6]\d:[0-6]\d(\.\d{0,9})?([Zz]|[+-][012]\d:[0-6]\d)?", fullmatch=True
    ),
    "uuid": st.from_regex(r"(urn:uuid:)?\{?([0-9a-fA-F]{8}-([0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32})\}?"),
    "uri": st.from_regex(r"[a-zA-Z]{1,6}:(//)?([a-z@:./?#%é \[\]0-9]|%[0-9A-Fa-f]{2}){0,20}"),
    "base64": st.one_of(
        st.binary(max_size=12).map(lambda data: base64.b64encode(data).decode()),
        st.binary(max_size=12).map(lambda data: base64.urlsafe_b64encode(data).decode().rstrip("=")),
        st.binary(min_size=60, max_size=80).map(lambda data: base64.encodebytes(data).decode()),
        st.text("AZaz09+/=-_\n", max_size=12),
    ),
}


ZONES = st.one_of(
    st.timezones(),
    st.builds(dt.timezone, st.timedeltas(dt.timedelta(hours=-23, minutes=-59), dt.timedelta(hours=23, minutes=59))),
)
OFFSETS = st.integers(-1439, 1439).map(lambda minutes: dt.timezone(dt.timedelta(minutes=minutes)))
VALUES: Mapping[str, st.SearchStrategy[Any]] = {
    "date": st.dates(),
    "date-time": st.datetimes(dt.datetime(1, 1, 3), dt.datetime(9999, 12, 29), timezones=ZONES, allow_imaginary=False),
    "time": st.times(timezones=OFFSETS),
    "uuid": st.uuids(),
    "uri": st.sampled_from([text for text in instances.TEXTS["uri"] if ":" in text and " " not in text]).map(AnyUrl),
    "base64": st.binary(),
}
