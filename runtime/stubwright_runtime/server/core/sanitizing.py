"""Sanitizing of the server's output: no escape sequences, no hidden reordering of text, no half characters.

The manifest's `policy.sanitize` sets the mode: `text`, every string of every content block; `all`, structured
content, too; `none`, only halves of surrogate pairs, which no transport can carry.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from ...values.json import is_list, is_mapping
from ...values.nesting import DepthError, is_too_deep
from ...values.sanitizing import SanitizeStats, clean, escape_controls
from ...values.text import replace_surrogates

_encode: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

# `encode_json` escapes what `clean` removes. An escaped backslash may match, too, and only costs a walk.
_SUSPECT_JSON: Final = re.compile(r"\\(?:u00[01789]|u20[26]|[bf])")


def sanitize(value: Any, count: SanitizeStats | None = None) -> tuple[Any, str]:
    """Return a JSON value with all strings and keys clean, and its JSON text.

    Of two keys that become the same, the value of the last one stays.

    Raises:
        TypeError: It holds a value that is not JSON.
        ValueError: It holds a number that is not JSON, such as an infinite one.
        DepthError: No message can carry it.
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
    """Return a JSON value whose strings and keys are Unicode, and its size as JSON, in bytes.

    Halves of surrogate pairs are joined or become U+FFFD. A value that is not JSON comes back unchanged, without a
    size; validation finds its fault.
    """
    try:
        return value, len(_encode(value).encode())
    except UnicodeEncodeError:
        return repair_unicode(_join_halves(value))
    except (RecursionError, TypeError, ValueError):
        return value, None


def encode_json(value: Any) -> tuple[Any, str]:
    """Return a JSON value with whole characters, and its JSON text.

    The text parses to the same value. Characters that `clean` would remove are written `\\uXXXX` in it.

    Raises:
        TypeError: It holds a value that is not JSON.
        ValueError: It holds a number that is not JSON, such as an infinite one.
        DepthError: No message can carry it.
    """
    try:
        text = _encode(value)
    except RecursionError:
        raise DepthError from None
    if is_too_deep(value, text):
        raise DepthError
    try:
        text.encode()
    except UnicodeEncodeError:
        return encode_json(_join_halves(value))
    return value, escape_controls(text)


def _join_halves(value: object) -> Any:
    if isinstance(value, str):
        return replace_surrogates(value)
    if is_mapping(value):
        return {_join_halves(key): _join_halves(item) for key, item in value.items()}
    if is_list(value):
        return [_join_halves(item) for item in value]
    return value
