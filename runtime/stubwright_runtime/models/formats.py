"""Parses strings with a `format` (dates, times, UUIDs, URIs, base64) into Python values that format as the same string.

If no exact value exists, a string stays a string if the union contains `str`, and is rejected otherwise.
"""

from __future__ import annotations

import base64
import datetime as dt
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, SupportsIndex, TypeGuard, TypeVar
from uuid import UUID

from pydantic import AnyUrl, ConfigDict, TypeAdapter
from pydantic_core import PydanticSerializationUnexpectedValue, core_schema

from ..values.json import is_list, is_object

T = TypeVar("T")

_HOURS: Final = r"([01]\d|2[0-3]):[0-5]\d"
_TIME: Final = rf"{_HOURS}:[0-5]\d(\.\d{{1,6}})?([Zz]|[+-]{_HOURS})"
_FULL_TIME: Final = re.compile(_TIME, re.ASCII)
_DATE_TIME: Final = re.compile(rf"\d{{4}}-\d\d-\d\d[Tt]{_TIME}", re.ASCII)


class _Time(dt.time):
    """A time that stores its original string. Derived times do not."""

    written: str | None = None

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        return super().__reduce_ex__(protocol) if self.written is None else (_read_time, (self.written,))


class _DateTime(dt.datetime):
    """A datetime that stores its original string. Derived datetimes do not."""

    written: str | None = None

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        return super().__reduce_ex__(protocol) if self.written is None else (_read_date_time, (self.written,))


class _PathlessUrl(AnyUrl):
    """A URL without a path, such as `https://example.com`. Pydantic would add a slash to the URL."""

    def __reduce__(self) -> tuple[Any, ...]:
        return _read_url, (str(self),)


@dataclass(frozen=True, slots=True)
class Kind:
    """A format's Python type, with functions to parse and format values.

    `read` raises a `ValueError` for a string that the type cannot represent exactly.
    """

    type: type[Any]
    read: Callable[[str], Any]
    write: Callable[[Any], str]


def _read_date(text: str) -> dt.date:
    return _check_round_trip(dt.date.fromisoformat(text), text, dt.date.isoformat)


def _read_time(text: str) -> dt.time:
    if not _FULL_TIME.fullmatch(text):
        raise ValueError(text)
    value = dt.time.fromisoformat(text.upper())
    if _write_time(value) != text:
        value = _Time.fromisoformat(text.upper())
        value.written = text
    return value


def _write_time(value: dt.time) -> str:
    if isinstance(value, _Time) and value.written is not None:
        return value.written
    offset = _get_offset(value)
    if offset % _MINUTE:
        raise ValueError(f"the offset of {value} is not a whole number of minutes, as RFC 3339 requires")
    return _add_z(value.isoformat())


def _read_date_time(text: str) -> dt.datetime:
    if not _DATE_TIME.fullmatch(text):
        raise ValueError(text)
    value = dt.datetime.fromisoformat(text.upper())
    if _write_date_time(value) != text:
        value = _DateTime.fromisoformat(text.upper())
        value.written = text
    return value


def _write_date_time(value: dt.datetime) -> str:
    """Format a datetime. Use UTC if RFC 3339 (section 5.6) cannot express the offset, as for most dates before 1900."""
    if isinstance(value, _DateTime) and value.written is not None:
        return value.written
    offset = _get_offset(value)
    if offset % _MINUTE:
        try:
            value = value.replace(tzinfo=dt.UTC) - offset
        except OverflowError:
            raise ValueError(f"the offset of {value} is not a whole number of minutes, as RFC 3339 requires") from None
    return _add_z(value.isoformat())


_MINUTE: Final = dt.timedelta(minutes=1)


def _get_offset(value: dt.time | dt.datetime) -> dt.timedelta:
    offset = value.utcoffset()
    if offset is None:
        raise ValueError(
            f"{value.isoformat()} has no offset from UTC, which RFC 3339 requires; set `tzinfo=datetime.UTC`"
        )
    return offset


def _add_z(text: str) -> str:
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


def _read_uuid(text: str) -> UUID:
    return _check_round_trip(UUID(text), text, str)


def _read_base64(text: str) -> bytes:
    return _check_round_trip(base64.b64decode(text, validate=True), text, _write_base64)


def _write_base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


@cache
def _make_url_adapter() -> TypeAdapter[_PathlessUrl]:
    return TypeAdapter(_PathlessUrl, config=ConfigDict(url_preserve_empty_path=True))


def _read_url(text: str) -> AnyUrl:
    url = AnyUrl(text)
    return url if str(url) == text else _check_round_trip(_make_url_adapter().validate_python(text), text, str)


def _check_round_trip(value: T, text: str, write: Callable[[T], str]) -> T:
    if write(value) != text:
        raise ValueError(text)
    return value


BASE64: Final = "base64"

_BY_FORMAT: Final[Mapping[str, Kind]] = {
    BASE64: Kind(bytes, _read_base64, _write_base64),
    "date": Kind(dt.date, _read_date, dt.date.isoformat),
    "date-time": Kind(dt.datetime, _read_date_time, _write_date_time),
    "time": Kind(dt.time, _read_time, _write_time),
    "uri": Kind(AnyUrl, _read_url, str),
    "uuid": Kind(UUID, _read_uuid, str),
}
_PYDANTIC: Final = {
    "bytes": BASE64,
    "datetime": "date-time",
    "date": "date",
    "time": "time",
    "url": "uri",
    "uuid": "uuid",
}
_KINDS: Final[Mapping[str, Kind]] = {name: _BY_FORMAT[form] for name, form in _PYDANTIC.items()}
"""The types, by pydantic's names."""

TYPED: Final = frozenset(_BY_FORMAT)
"""The formats with Python types, including the encoding `base64`."""


def is_exact(form: str, text: str) -> bool:
    """Return whether a format's type (one of `TYPED`) represents a string exactly."""
    try:
        _BY_FORMAT[form].read(text)
    except ValueError:
        return False
    return True


def write(value: object) -> str | None:
    """Format a value of a format's Python type; return `None` for other values.

    Raises:
        ValueError: A time has no offset from UTC, or RFC 3339 cannot express its offset.
    """
    kind = next((kind for kind in _KINDS.values() if _is_of(value, kind)), None)
    return None if kind is None else kind.write(value)


def with_texts(union: Any) -> Any:
    """Return a core schema for a union that parses strings as the first type that represents them exactly."""
    choices = [_strip_label(choice) for choice in union["choices"]]
    kinds = [kind for choice in choices if (kind := _KINDS.get(_type_name(choice)))]
    if any(choice["type"] == "any" for choice in choices):  # otherwise pydantic does not try other alternatives
        union = {
            **union,
            "serialization": core_schema.plain_serializer_function_ser_schema(_write_within, when_used="json"),
        }
    if not kinds:
        return union
    reader = core_schema.no_info_plain_validator_function(
        _Reader(tuple(kinds), any(choice["type"] == "str" for choice in choices)),
        json_schema_input_schema=core_schema.str_schema(),
        serialization=core_schema.plain_serializer_function_ser_schema(_write_text, when_used="json"),
    )
    others = [choice for choice in choices if choice["type"] != "str" and _type_name(choice) not in _KINDS]
    return {**union, "choices": [reader, *others]} if others else reader


def read_exactly(schema: Any) -> Any:
    """Return a core schema for a type that accepts only strings that it represents exactly."""
    return with_texts({"choices": [schema]}) if _type_name(schema) in _KINDS else schema


def with_default(field: Any) -> Any:
    """Parse the strings in a field's default."""
    return {**field, "default": _read_in(field["schema"], field["default"])} if "default" in field else field


def _read_in(schema: Any, value: Any) -> Any:
    """Parse the strings in a value according to a core schema from `with_texts`."""
    match schema["type"]:
        case "function-plain" if isinstance(value, str) and isinstance(schema["function"]["function"], _Reader):
            return schema["function"]["function"](value)
        case "union":
            read = (_read_in(_strip_label(choice), value) for choice in schema["choices"])
            return next((result for result in read if result is not value), value)
        case "tagged-union":
            read = (_read_in(choice, value) for choice in schema["choices"].values())
            return next((result for result in read if result is not value), value)
        case "nullable" | "function-wrap" if "schema" in schema:
            return _read_in(schema["schema"], value)
        case "list" if "items_schema" in schema and _is_list(value):
            return _read_items(schema["items_schema"], value)
        case "dict" if "values_schema" in schema and _is_dict(value):
            return _read_entries(schema["values_schema"], value)
        case _:
            return value


def _is_list(value: object) -> TypeGuard[list[Any]]:
    return isinstance(value, list)


def _is_dict(value: object) -> TypeGuard[dict[str, Any]]:
    return isinstance(value, dict)


def _read_items(schema: Any, value: list[Any]) -> list[Any]:
    items = [_read_in(schema, item) for item in value]
    return items if items != value else value


def _read_entries(schema: Any, value: dict[str, Any]) -> dict[str, Any]:
    entries = {key: _read_in(schema, entry) for key, entry in value.items()}
    return entries if entries != value else value


def _type_name(schema: Any) -> str:
    """Return pydantic's name for a type. The URL schema is wrapped."""
    while schema["type"] == "function-wrap":
        schema = schema["schema"]
    return str(schema["type"])


def _strip_label(choice: Any) -> Any:
    return choice[0] if is_list(choice) else choice


@dataclass(frozen=True, slots=True)
class _Reader:
    """Parses a string as the first type that represents the string exactly, and accepts values of the types unchanged.

    If no type represents a string exactly, the string passes unchanged if `keeps_text` is true, and is rejected
    otherwise.
    """

    kinds: tuple[Kind, ...]
    keeps_text: bool

    def __call__(self, value: object) -> object:
        if not isinstance(value, str):
            if any(_is_of(value, kind) for kind in self.kinds):
                if isinstance(value, dt.time | dt.datetime):
                    write(value)  # raises for invalid offsets
                return value
            raise ValueError("not a string")
        for kind in self.kinds:
            try:
                return kind.read(value)
            except ValueError:
                continue
        if not self.keeps_text:
            raise ValueError(
                f"not a string that {' or '.join(kind.type.__name__ for kind in self.kinds)} represents exactly"
            )
        return value


def _is_of(value: object, kind: Kind) -> bool:
    """Return whether a value is of a type. A datetime is not a date here, although its class is a subclass."""
    return isinstance(value, kind.type) and not (kind.type is dt.date and isinstance(value, dt.datetime))


def _write_text(value: Any) -> str:
    text = value if isinstance(value, str) else write(value)
    if text is None:  # another union alternative serializes it
        raise PydanticSerializationUnexpectedValue(f"Expected a string, not {type(value).__name__}")
    return text


def _write_within(value: Any) -> Any:
    """Format dates and similar values in lists and dictionaries. Models serialize themselves."""
    if is_object(value):
        return {key: _write_within(below) for key, below in value.items()}
    if is_list(value):
        return [_write_within(below) for below in value]
    text = write(value)
    return value if text is None else text
