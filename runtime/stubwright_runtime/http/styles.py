"""Formats values for URLs, headers and cookies in OpenAPI styles (3.1.1, section 4.8.12.3; RFC 6570)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping
from typing import Any, Final, TypeAlias
from urllib.parse import quote

from ..errors import ToolError
from ..values.json import Json, is_list

Encode: TypeAlias = Callable[[str], str]

RESERVED: Final = ":/?@!$'()*,;"
"""Reserved characters allowed in a query value (RFC 3986, 2.2 and 3.4)."""


def encode(text: str, charset: str = "utf-8") -> str:
    """Percent-encode all characters except unreserved ones (RFC 3986, 2.3)."""
    return quote(text, safe="", encoding=charset, errors="replace")


_TRIPLE: Final = re.compile("(%[0-9A-Fa-f]{2})")
_NO_COOKIE: Final = re.compile(r"[^\x21\x23-\x2b\x2d-\x3a\x3c-\x5b\x5d-\x7e]")
"""Characters not allowed in a cookie value (RFC 6265, 4.1.1)."""


def encode_but_reserved(text: str, charset: str = "utf-8") -> str:
    """Percent-encode all characters except those allowed in a query and existing triplets (RFC 6570, 3.2.3)."""
    parts = _TRIPLE.split(text)
    return "".join(
        part if index % 2 else quote(part, safe=RESERVED, encoding=charset, errors="replace")
        for index, part in enumerate(parts)
    )


def refuse_escaping(text: str) -> str:
    """Return a cookie value unchanged if it is already escaped (OpenAPI 3.2.0, style `cookie`).

    Raises:
        ToolError: A character is not escaped.
    """
    if found := _NO_COOKIE.search(text):
        raise ToolError(f"A cookie cannot contain {found[0]!r}; escape it as the API expects.")
    return text


def format_plain(value: Any) -> str:
    """Format a value: a string unchanged, any other value as JSON."""
    if isinstance(value, str):
        return value
    return "" if value is None else json.dumps(value, ensure_ascii=False, separators=(",", ":"))


def format_pairs(style: str, *, explode: bool, name: str, value: Json, encode: Encode = encode) -> list[str]:
    """Format a value as `name=value` pairs for a query, a form or cookies; empty values have no pairs.

    Args:
        style: `form`, `cookie`, `spaceDelimited`, `pipeDelimited`, `tabDelimited` or `deepObject`.
        explode: Whether each item or entry becomes its own pair.
        name: The parameter.
        value: The value.
        encode: Encodes names and values.
    """
    key = encode(name)
    if style == "deepObject" and isinstance(value, Mapping | list):
        return list(_deep(key, value, encode))
    if isinstance(value, Mapping) and explode:  # repeat lists in objects; no standard defines this
        entries = [(inner, item) for inner, given in value.items() for item in (given if is_list(given) else [given])]
        return [f"{encode(inner)}={encode(format_plain(item))}" for inner, item in entries]
    if isinstance(value, list) and explode:
        return [f"{key}={encode(format_plain(item))}" for item in value]
    if isinstance(value, Mapping | list):
        parts = [encode(format_plain(item)) for item in _flat(value)]
        return [f"{key}={_get_delimiter(style, encode).join(parts)}"] if parts else []
    return [f"{key}={encode(format_plain(value))}"]


DELIMITERS: Final = {"spaceDelimited": " ", "pipeDelimited": "|", "tabDelimited": "\t"}
"""List item delimiters by style; the default is a comma."""


def _get_delimiter(style: str, encode: Encode) -> str:
    return encode(DELIMITERS[style]) if style in DELIMITERS else ","


def format_segment(style: str, *, explode: bool, name: str, value: Json, encode: Encode = encode) -> str:
    """Format a value for a path or a header.

    Args:
        style: `simple`, `label`, `matrix`, `spaceDelimited`, `pipeDelimited` or `tabDelimited`.
        explode: Whether an object's entries become `key=value` and, for `label` and `matrix`, list items are separate.
        name: The parameter, for `matrix`.
        value: The value.
        encode: Encodes names and values.
    """
    if isinstance(value, Mapping) and explode:
        parts = [f"{encode(key)}={encode(format_plain(item))}" for key, item in value.items()]
    elif isinstance(value, Mapping | list):
        parts = [encode(format_plain(item)) for item in _flat(value)]
    else:
        parts = [encode(format_plain(value))]
    if style == "matrix":
        key = encode(name)
        if isinstance(value, list) and explode:
            return "".join(f";{key}={part}" for part in parts)
        if isinstance(value, Mapping) and explode:
            return "".join(f";{part}" for part in parts)
        return f";{key}={','.join(parts)}"
    if style == "label":
        return "." + ("." if explode else ",").join(parts)
    return _get_delimiter(style, encode).join(parts)


def _flat(value: Mapping[str, Any] | list[Any]) -> list[Any]:
    """Return a list's items, or an object's alternating keys and values."""
    if isinstance(value, Mapping):
        return [part for entry in value.items() for part in entry]
    return value


def _deep(prefix: str, value: Json, encode: Encode) -> list[str]:
    """Return `deepObject` pairs, with nested values as most servers expect: `filter[a][b]=1&filter[c][0]=2`."""
    if isinstance(value, Mapping):
        return [
            part for key, item in value.items() for part in _deep(f"{prefix}{encode('[' + key + ']')}", item, encode)
        ]
    if isinstance(value, list):
        return [
            part for index, item in enumerate(value) for part in _deep(f"{prefix}{encode(f'[{index}]')}", item, encode)
        ]
    return [f"{prefix}={encode(format_plain(value))}"]
