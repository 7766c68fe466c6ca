"""Sanitizes output: removes escape sequences and bidirectional controls, and repairs surrogates.

The mode is the manifest's `policy.sanitize`: `text` covers strings in content blocks; `all` covers structured content,
too; `none` repairs only surrogates, which no transport can encode.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from ...values.json import is_list, is_mapping
from ...values.nesting import DEEPEST, DepthError, is_too_deep
from ...values.sanitizing import UNSAFE, SanitizeStats, clean
from ...values.text import replace_surrogates

_encode: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

# `encode_json` escapes the characters that `clean` removes. A false match on an escaped backslash only costs time.
_SUSPECT_JSON: Final = re.compile(r"\\(?:u00[01789]|u20[26]|[bf])")


def sanitize(value: Any, count: SanitizeStats | None = None) -> tuple[Any, str]:
    """Return a JSON value with sanitized strings and keys, and its JSON text.

    If two keys become equal, the last value is used.

    Raises:
        TypeError: The value is not JSON.
        ValueError: The value contains a number that is not JSON, such as infinity.
        DepthError: The value is nested too deeply.
    """
    value, text = encode_json(value)
    return (value, text) if _SUSPECT_JSON.search(text) is None else encode_json(_sanitize_strings(value, count))


def _sanitize_strings(value: object, count: SanitizeStats | None) -> Any:
    if isinstance(value, str):
        return clean(value, count)
    if is_mapping(value):
        return {
            clean(key, count) if isinstance(key, str) else key: _sanitize_strings(item, count)
            for key, item in value.items()
        }
    if is_list(value):
        return [_sanitize_strings(item, count) for item in value]
    return value


def repair_unicode(value: Any) -> tuple[Any, int | None]:
    """Return a JSON value with valid Unicode, and its size as JSON in bytes.

    Surrogates are joined or replaced by U+FFFD. A value that is not JSON is returned unchanged, without a size, and
    fails validation later.
    """
    try:
        return value, len(_encode(value).encode())
    except UnicodeEncodeError:
        return repair_unicode(_join_halves(value))
    except (RecursionError, TypeError, ValueError):
        return value, None


def encode_json(value: Any) -> tuple[Any, str]:
    """Return a JSON value with valid Unicode, and its JSON text.

    The text escapes the characters that `clean` would remove as `\\uXXXX`.

    Raises:
        TypeError: The value is not JSON.
        ValueError: The value contains a number that is not JSON, such as infinity.
        DepthError: The value is nested too deeply.
    """
    try:
        text = _encode(value)
    except RecursionError:
        raise DepthError from None
    if text.count("{") + text.count("[") > DEEPEST and is_too_deep(value):
        raise DepthError
    try:
        text.encode()
    except UnicodeEncodeError:
        return encode_json(_join_halves(value))
    return value, UNSAFE.sub(_escape, text)


def _escape(match: re.Match[str]) -> str:
    return f"\\u{ord(match[0]):04x}"


def _join_halves(value: object) -> Any:
    if isinstance(value, str):
        return replace_surrogates(value)
    if is_mapping(value):
        return {_join_halves(key): _join_halves(item) for key, item in value.items()}
    if is_list(value):
        return [_join_halves(item) for item in value]
    return value
