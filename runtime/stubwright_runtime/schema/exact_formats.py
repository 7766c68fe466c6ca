"""Asserts formats as strictly as their Python types (`python: {formats: strict}`)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from functools import cache, partial
from typing import Any, Final

from jsonschema_rs import validator_for
from pydantic import AnyUrl

from ..models.formats import BASE64, TYPED, is_exact
from ..values.json import is_list, is_mapping

_WITHOUT_ENCODING: Final = re.compile(r"https?://json-schema\.org/draft-0[346]/schema#?")
"""The dialects without `contentEncoding`."""

_IN_META_SCHEMAS: Final = ("regex", "uri-reference")
"""Meta-schema formats without a Python type. A schema can reference a meta-schema."""

_LONGEST: Final = 200  # maximum URL length in a message
_OFFSET: Final = r"([Zz]|[+-]\d\d:\d\d)"
_YEAR: Final = (r"0000-.*", "the year must be 0001 or later")
_TIMES: Final = (
    (rf".*\d\d:\d\d:60(\.\d+)?{_OFFSET}", "leap seconds are not accepted"),
    (rf".*\d\d:\d\d:\d\d\.\d{{7,}}{_OFFSET}", "a fraction of a second may have at most six digits"),
)
_HINTS: Final[Mapping[str, tuple[tuple[str, str], ...]]] = {
    BASE64: ((r"[\s\S]*", "it must have padding, no line breaks, and the alphabet of RFC 4648, section 4"),),
    "date": (_YEAR,),
    "date-time": (_YEAR, *_TIMES),
    "time": _TIMES,
    "uuid": ((r"[0-9A-Fa-f-]{36}", "write it in lower case"),),
}
"""Patterns for strings that a format's type cannot represent, with hints."""


def get_settings(schema: Any, *, formats: bool) -> Mapping[str, Any]:
    """Return the arguments of `jsonschema_rs.validator_for` for a schema.

    Args:
        schema: The schema.
        formats: Whether formats without a type are asserted.
    """
    checks: dict[str, Callable[[str], bool]] = {form: partial(fits, form) for form in TYPED - {BASE64}}
    if not formats:
        checks |= {form: _accept for form in (*_IN_META_SCHEMAS, *_find_formats(schema)) if form not in checks}
    dialect = schema.get("$schema") if is_mapping(schema) else None
    has_encoding = not (isinstance(dialect, str) and _WITHOUT_ENCODING.fullmatch(dialect))
    keywords = {"contentEncoding": _ContentEncoding} if has_encoding else {}
    return {"validate_formats": True, "formats": checks, "keywords": keywords}


def suggest(form: str, text: str) -> str:
    """Return a suggestion for a rejected string, or an empty string if it does not have the format."""
    if form == "uri":
        return _suggest_url(text)
    if form != BASE64 and not is_inexact(form, text):
        return ""
    return next((hint for pattern, hint in _HINTS[form] if re.fullmatch(pattern, text)), "")


def is_inexact(form: str, text: str) -> bool:
    """Return whether a string has a format with a Python type, even if the type cannot represent it exactly."""
    return form != BASE64 and form in TYPED and is_valid(form, text)


def _suggest_url(text: str) -> str:
    try:
        written = str(AnyUrl(text))
    except ValueError:
        return ""
    is_help = len(written) <= _LONGEST and written != text and fits("uri", written)
    return f"write it as {written}" if is_help else ""


def fits(form: str, text: str) -> bool:
    """Return whether a string has a format, and the format's Python type represents it exactly."""
    return is_exact(form, text) and (form == BASE64 or is_valid(form, text))


def is_valid(form: str, text: str) -> bool:
    """Return whether a string has a JSON Schema format."""
    return bool(_compile_format(form).is_valid(text))


@cache
def _compile_format(form: str) -> Any:
    return validator_for({"format": form}, validate_formats=True)


def _accept(_: str) -> bool:
    return True


def _find_formats(schema: Any) -> Iterator[str]:
    waiting = [schema]
    while waiting:
        here = waiting.pop()
        if is_mapping(here):
            if isinstance(form := here.get("format"), str):
                yield form
            waiting += here.values()
        elif is_list(here):
            waiting += here


class _ContentEncoding:
    """The keyword `contentEncoding`, which is only an annotation in most dialects."""

    def __init__(self, _schema: Mapping[str, Any], value: object, _path: object) -> None:
        self._is_base64 = value == BASE64

    def validate(self, instance: object) -> None:
        if self._is_base64 and isinstance(instance, str) and not fits(BASE64, instance):
            raise ValueError(BASE64)
