"""What leaves the server is clean: no escape sequences, no hidden reordering of text, no half characters.

Takes text and JSON values; gives the same without what could harm a terminal, a reader or a transport
(MCP 2025-11-25, server/tools, "Security Considerations": servers MUST sanitize tool outputs). It changes nothing else.
How much is cleaned is the manifest's `policy.sanitize`: `text`, every string of every content block; `all`, structured
content, too; `none`, nothing but halves of surrogate pairs, which no transport can carry.
"""

from __future__ import annotations

import json
import re
from typing import Any, Final

from ...values.json import is_list, is_mapping
from ...values.nesting import DepthError, is_too_deep
from ...values.sanitizing import Cleaned, clean, escape_controls
from ...values.text import replace_surrogates

_encode: Final = json.JSONEncoder(ensure_ascii=False, allow_nan=False).encode

_SUSPECT_JSON: Final = re.compile(r"\\(?:u00[01789]|u20[26]|[bf])")


def sanitize(value: Any, count: Cleaned | None = None) -> tuple[Any, str]:
    """Return a JSON value whose strings and keys are all clean, and its JSON text.

    Of two keys that are alike when they are clean, the value of the last one stays.

    Raises:
        TypeError: It holds what is no JSON.
        ValueError: It holds what is no JSON, such as an infinite number.
        DepthError: No message can carry it.
    """
    value, text = encode_json(value)
    return (value, text) if _SUSPECT_JSON.search(text) is None else encode_json(_sanitize_strings(value, count))


def _sanitize_strings(value: object, count: Cleaned | None) -> Any:
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

    Halves of surrogate pairs are joined or become U+FFFD. A value that is no JSON comes back as it is, without a size;
    validation says what is wrong with it.
    """
    try:
        return value, len(_encode(value).encode())
    except UnicodeEncodeError:
        return repair_unicode(_join_halves(value))
    except (RecursionError, TypeError, ValueError):
        return value, None


def encode_json(value: Any) -> tuple[Any, str]:
    """Return a JSON value with whole characters, and its JSON text.

    The text parses to the same value and holds nothing that `clean` would remove; that is written `\\uXXXX`.

    Raises:
        TypeError: It holds what is no JSON.
        ValueError: It holds what is no JSON, such as an infinite number.
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
