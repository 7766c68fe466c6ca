"""Suggestions on how to correct a value that a schema refuses."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from ..values.equality import are_equal
from ..values.json import Json

_FORMATS: Final[Mapping[str, str]] = {
    "date": "write YYYY-MM-DD, such as 2025-08-08",
    "date-time": "write YYYY-MM-DDThh:mm:ss and Z or an offset, such as 2025-08-08T14:30:00Z",
    "duration": "write an ISO 8601 duration, such as P3D or PT1H30M",
    "email": "write an address, such as name@example.com",
    "hostname": "write a host name, such as example.com",
    "ipv4": "write an IPv4 address, such as 192.0.2.1",
    "ipv6": "write an IPv6 address, such as 2001:db8::1",
    "json-pointer": "write a JSON Pointer, such as /items/0",
    "time": "write hh:mm:ss and Z or an offset, such as 14:30:00Z",
    "uri": "write a URI with its scheme, such as https://example.com/",
    "uuid": "write a UUID, such as 123e4567-e89b-12d3-a456-426614174000",
}
"""The form of strings by format (JSON Schema 2020-12, validation, 7.3)."""

_ENVELOPES: Final = frozenset({"args", "arguments", "data", "input", "kwargs", "parameters", "params", "request"})
_MOST_COMPARED: Final = 200  # items; two of many are not worth the time


def suggest_form(form: str) -> str:
    """Return a hint on how to write a string of a format; empty for other formats."""
    return _FORMATS.get(form, "")


def find_equal_items(value: Any) -> tuple[int, int] | None:
    """Return the indices of the first two equal items of an array; None if it is long, or there are none."""
    if not isinstance(value, list) or len(value) > _MOST_COMPARED:
        return None
    return next(
        (
            (first, second)
            for second, item in enumerate(value)
            for first in range(second)
            if are_equal(value[first], item)
        ),
        None,
    )


def find_envelope(value: Any, known: Collection[str]) -> str | None:
    """Return the key that a model has put around all arguments, as in `{"args": {…}}`; None if there is none."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    [(name, inner)] = value.items()
    is_envelope = name in _ENVELOPES and name not in known and isinstance(inner, dict)
    return name if is_envelope and (not known or not inner.keys().isdisjoint(known)) else None


def find_causes(schema: Json, keyword: str, instance: Mapping[str, Any], missing: str) -> Sequence[str]:
    """Return the keys of a value because of which a key is required (JSON Schema, `dependentRequired`).

    Args:
        schema: The schema with the keyword.
        keyword: `dependentRequired`, or `dependencies` in older dialects.
        instance: The value.
        missing: The key that is required.
    """
    rules: Json = schema.get(keyword) if isinstance(schema, dict) else None
    needs = rules.items() if isinstance(rules, dict) else ()
    return [name for name, keys in needs if name in instance and isinstance(keys, list) and missing in keys]
