"""Sanitizes output: removes escape sequences and bidirectional controls, and replaces lone surrogates.

The mode is the manifest's `policy.sanitize`: `text` sanitizes strings in content blocks; `all` also sanitizes
structured content; `none` only replaces surrogates, which no transport can encode.
"""

from __future__ import annotations

import re
from typing import Any, Final

from ...values.json import is_list, is_mapping
from ...values.sanitizing import SanitizeStats, clean
from ..protocol.messages import encode_json

# Matches `encode_json`'s escapes of the characters that `clean` removes. A false match, on an escaped backslash, only
# costs time.
_SUSPECT_JSON: Final = re.compile(r"\\(?:u00[01789]|u20[26]|[bf])")


def sanitize(value: Any, count: SanitizeStats | None = None) -> tuple[Any, str]:
    """Return a JSON value with its strings and keys sanitized, and the same value as JSON text.

    If two keys become equal, the later value is used.

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
