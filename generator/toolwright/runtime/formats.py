"""Texts with a `format` as values of Python: dates, times, UUIDs, URIs and base64.

Takes the core schema of a union of such a type and `str`; gives one that reads a text as the type where it says exactly
what that type can hold, and else leaves it a text, since `format` need not be asserted. What was read goes out as the
text that it was.
"""

from __future__ import annotations

import base64
import datetime as dt
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache, partial
from typing import Any, Final, TypeVar
from uuid import UUID

from pydantic import AnyUrl, ConfigDict, TypeAdapter
from pydantic_core import core_schema

from .model import FORMATS

T = TypeVar("T")

_TIME: Final = r"\d\d:\d\d:\d\d(\.\d{1,6})?([Zz]|[+-]\d\d:\d\d)"
_FULL_TIME: Final = re.compile(_TIME, re.ASCII)
_DATE_TIME: Final = re.compile(rf"\d{{4}}-\d\d-\d\d[Tt]{_TIME}", re.ASCII)


class _Time(dt.time):
    """A time that knows how it was written."""

    written: str | None = None

    def __deepcopy__(self, memo: object) -> _Time:
        """Itself, since it never changes."""
        return self


class _DateTime(dt.datetime):
    """A date with a time that knows how it was written."""

    written: str | None = None

    def __deepcopy__(self, memo: object) -> _DateTime:
        """Itself, since it never changes."""
        return self


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
    value = dt.time.fromisoformat(text)
    if _write_time(value) != text:
        value = _Time.fromisoformat(text)
        value.written = text
    return value


def _write_time(value: dt.time) -> str:
    return getattr(value, "written", None) or _with_zone(value.isoformat(), value.tzinfo)


def _read_date_time(text: str) -> dt.datetime:
    if not _DATE_TIME.fullmatch(text):
        raise ValueError(text)
    value = dt.datetime.fromisoformat(text)
    if _write_date_time(value) != text:
        value = _DateTime.fromisoformat(text)
        value.written = text
    return value


def _write_date_time(value: dt.datetime) -> str:
    return getattr(value, "written", None) or _with_zone(value.isoformat(), value.tzinfo)


def _with_zone(text: str, zone: dt.tzinfo | None) -> str:
    """A time as RFC 3339 has it, section 5.6."""
    if zone is None:
        raise ValueError(f"{text} has no time zone, which RFC 3339 asks for, such as `tzinfo=datetime.UTC`")
    return f"{text[:-6]}Z" if text.endswith("+00:00") else text


def _read_uuid(text: str) -> UUID:
    return _same(UUID(text), text, str)


def _read_base64(text: str) -> bytes:
    return _same(base64.b64decode(text, validate=True), text, _write_base64)


def _write_base64(value: bytes) -> str:
    return base64.b64encode(value).decode("ascii")


@cache
def _urls() -> TypeAdapter[AnyUrl]:
    return TypeAdapter(AnyUrl, config=ConfigDict(url_preserve_empty_path=True))


def _read_url(text: str) -> AnyUrl:
    return _same(_urls().validate_python(text), text, str)


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
        ValueError: It is a time without a time zone.
    """
    kind = next((kind for kind in _KINDS.values() if _is_of(value, kind)), None)
    return None if kind is None else kind.write(value)


def with_texts(union: Any) -> Any:
    """The core schema of a union, in which texts are read as those of its types that they are exactly."""
    choices: list[Any] = [choice[0] if isinstance(choice, tuple) else choice for choice in union["choices"]]
    kinds = [kind for choice in choices if (kind := _KINDS.get(_name(choice)))]
    if not kinds:
        return union
    made = core_schema.no_info_plain_validator_function(
        partial(_read, kinds),
        json_schema_input_schema=core_schema.str_schema(),
        serialization=core_schema.plain_serializer_function_ser_schema(_written, when_used="json"),
    )
    others = [choice for choice in choices if choice["type"] != "str" and _name(choice) not in _KINDS]
    return {**union, "choices": [made, *others]} if others else made


def _name(schema: Any) -> str:
    """Pydantic's name for a type; it wraps that of URLs."""
    while schema["type"] == "function-wrap":
        schema = schema["schema"]
    return str(schema["type"])


def _read(kinds: Sequence[Kind], value: object) -> object:
    if not isinstance(value, str):
        if any(_is_of(value, kind) for kind in kinds):
            return value
        raise ValueError("not a text")
    for kind in kinds:
        try:
            return kind.read(value)
        except ValueError:
            continue
    return value


def _is_of(value: object, kind: Kind) -> bool:
    """Whether a value is of a type; a date with a time is no date."""
    return isinstance(value, kind.type) and not (kind.type is dt.date and isinstance(value, dt.datetime))


def _written(value: Any) -> Any:
    text = write(value)
    return value if text is None else text


def install() -> None:
    """Let the models that are made from here on have such types."""
    FORMATS[:] = [_HERE]


class _Here:
    """This module, as models and callers ask it."""

    with_texts = staticmethod(with_texts)
    write = staticmethod(write)


_HERE: Final = _Here()
