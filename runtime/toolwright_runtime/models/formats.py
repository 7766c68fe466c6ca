"""Texts with a `format` as values of Python: dates, times, UUIDs, URIs and base64.

Takes the core schema of a union of such a type and `str`; gives one that reads a text as the type where it says exactly
what that type can hold, and else leaves it a text, since `format` need not be asserted. What was read goes out as the
text that it was.
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
    """A time that knows how it was written; one that was made of it does not."""

    written: str | None = None

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        """How to copy it, and to make it from a pickle."""
        return super().__reduce_ex__(protocol) if self.written is None else (_read_time, (self.written,))


class _DateTime(dt.datetime):
    """A date with a time that knows how it was written; one that was made of it does not."""

    written: str | None = None

    def __reduce_ex__(self, protocol: SupportsIndex) -> str | tuple[Any, ...]:
        """How to copy it, and to make it from a pickle."""
        return super().__reduce_ex__(protocol) if self.written is None else (_read_date_time, (self.written,))


class _PathlessUrl(AnyUrl):
    """A URL such as `https://example.com`, to which pydantic would add a slash."""

    def __reduce__(self) -> tuple[Any, ...]:
        """How to make it from a pickle."""
        return _read_url, (str(self),)


@dataclass(frozen=True, slots=True)
class Kind:
    """A type that texts are read as: its class, what reads a text, and what writes a value.

    `read` raises a `ValueError` for a text that the type cannot hold.
    """

    type: type[Any]
    read: Callable[[str], Any]
    write: Callable[[Any], str]


def _read_date(text: str) -> dt.date:
    return _same(dt.date.fromisoformat(text), text, dt.date.isoformat)


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
    offset = _offset(value)
    if offset % _MINUTE:
        raise ValueError(f"the offset of {value} is no whole minutes, which RFC 3339 asks for")
    return _with_z(value.isoformat())


def _read_date_time(text: str) -> dt.datetime:
    if not _DATE_TIME.fullmatch(text):
        raise ValueError(text)
    value = dt.datetime.fromisoformat(text.upper())
    if _write_date_time(value) != text:
        value = _DateTime.fromisoformat(text.upper())
        value.written = text
    return value


def _write_date_time(value: dt.datetime) -> str:
    """The text of a time, in UTC where RFC 3339 (section 5.6) cannot write its offset, as of most before 1900."""
    if isinstance(value, _DateTime) and value.written is not None:
        return value.written
    offset = _offset(value)
    if offset % _MINUTE:
        try:
            value = value.replace(tzinfo=dt.UTC) - offset
        except OverflowError:
            raise ValueError(f"the offset of {value} is no whole minutes, which RFC 3339 asks for") from None
    return _with_z(value.isoformat())


_MINUTE: Final = dt.timedelta(minutes=1)


def _offset(value: dt.time | dt.datetime) -> dt.timedelta:
    offset = value.utcoffset()
    if offset is None:
        raise ValueError(
            f"{value.isoformat()} has no offset from UTC, which RFC 3339 asks for; `tzinfo=datetime.UTC` gives one"
        )
    return offset


def _with_z(text: str) -> str:
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


def _read_uuid(text: str) -> UUID:
    return _same(UUID(text), text, str)


def _read_base64(text: str) -> bytes:
    return _same(base64.b64decode(text, validate=True), text, _write_base64)


def _write_base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


@cache
def _pathless_urls() -> TypeAdapter[_PathlessUrl]:
    return TypeAdapter(_PathlessUrl, config=ConfigDict(url_preserve_empty_path=True))


def _read_url(text: str) -> AnyUrl:
    url = AnyUrl(text)
    return url if str(url) == text else _same(_pathless_urls().validate_python(text), text, str)


def _same(value: T, text: str, write: Callable[[T], str]) -> T:
    """The value, if it is written as it was."""
    if write(value) != text:
        raise ValueError(text)
    return value


_KINDS: Final[Mapping[str, Kind]] = {
    "bytes": Kind(bytes, _read_base64, _write_base64),
    "date": Kind(dt.date, _read_date, dt.date.isoformat),
    "datetime": Kind(dt.datetime, _read_date_time, _write_date_time),
    "time": Kind(dt.time, _read_time, _write_time),
    "url": Kind(AnyUrl, _read_url, str),
    "uuid": Kind(UUID, _read_uuid, str),
}
"""By pydantic's name for each."""


def write(value: object) -> str | None:
    """The text of a value of one of the types; nothing for any other.

    Raises:
        ValueError: It is a time whose offset from UTC is not known, or cannot be written.
    """
    kind = next((kind for kind in _KINDS.values() if _is_of(value, kind)), None)
    return None if kind is None else kind.write(value)


def with_texts(union: Any) -> Any:
    """The core schema of a union, in which texts are read as those of its types that they are exactly."""
    choices = [_bare(choice) for choice in union["choices"]]
    kinds = [kind for choice in choices if (kind := _KINDS.get(_name(choice)))]
    if any(choice["type"] == "any" for choice in choices):  # by itself pydantic looks at no other alternative then
        union = {
            **union,
            "serialization": core_schema.plain_serializer_function_ser_schema(_written_within, when_used="json"),
        }
    if not kinds:
        return union
    made = core_schema.no_info_plain_validator_function(
        _Reader(tuple(kinds)),
        json_schema_input_schema=core_schema.str_schema(),
        serialization=core_schema.plain_serializer_function_ser_schema(_written, when_used="json"),
    )
    others = [choice for choice in choices if choice["type"] != "str" and _name(choice) not in _KINDS]
    return {**union, "choices": [made, *others]} if others else made


def with_default(field: Any) -> Any:
    """The core schema of a field with a default, in which the texts of that are read as its types."""
    return {**field, "default": _read_in(field["schema"], field["default"])} if "default" in field else field


def _read_in(schema: Any, value: Any) -> Any:
    """A value with its texts read, where the core schema, which `with_texts` made, has types for them."""
    match schema["type"]:
        case "function-plain" if isinstance(value, str) and isinstance(schema["function"]["function"], _Reader):
            return schema["function"]["function"](value)
        case "union":
            read = (_read_in(_bare(choice), value) for choice in schema["choices"])
            return next((made for made in read if made is not value), value)
        case "tagged-union":
            read = (_read_in(choice, value) for choice in schema["choices"].values())
            return next((made for made in read if made is not value), value)
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


def _name(schema: Any) -> str:
    """Pydantic's name for a type; it wraps that of URLs."""
    while schema["type"] == "function-wrap":
        schema = schema["schema"]
    return str(schema["type"])


def _bare(choice: Any) -> Any:
    """An alternative without its label."""
    return choice[0] if is_list(choice) else choice


@dataclass(frozen=True, slots=True)
class _Reader:
    """Reads texts as the first of some types that they are exactly; values of these types stay what they are."""

    kinds: tuple[Kind, ...]

    def __call__(self, value: object) -> object:
        if not isinstance(value, str):
            if any(_is_of(value, kind) for kind in self.kinds):
                if isinstance(value, dt.time | dt.datetime):
                    write(value)  # it raises where there is no text for it
                return value
            raise ValueError("not a text")
        for kind in self.kinds:
            try:
                return kind.read(value)
            except ValueError:
                continue
        return value


def _is_of(value: object, kind: Kind) -> bool:
    """Whether a value is of a type; a date with a time is no date."""
    return isinstance(value, kind.type) and not (kind.type is dt.date and isinstance(value, dt.datetime))


def _written(value: Any) -> str:
    text = value if isinstance(value, str) else write(value)
    if text is None:  # another alternative of the union writes it
        raise PydanticSerializationUnexpectedValue(f"Expected a text, not {type(value).__name__}")
    return text


def _written_within(value: Any) -> Any:
    """A value with the texts of what stands for such in its lists and dictionaries; models write their own."""
    if is_object(value):
        return {key: _written_within(below) for key, below in value.items()}
    if is_list(value):
        return [_written_within(below) for below in value]
    text = write(value)
    return value if text is None else text
