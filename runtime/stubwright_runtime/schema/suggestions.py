"""Suggests corrections for invalid values."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from typing import Any, Final

from ..values.equality import are_equal
from ..values.json import Json, is_list, is_mapping
from ..values.text import find_target

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
"""Hints by format (JSON Schema 2020-12, Validation, 7.3)."""

_ENVELOPES: Final = frozenset({"args", "arguments", "data", "input", "kwargs", "parameters", "params", "request"})
_MOST_COMPARED: Final = 200  # maximum items, since the comparison is quadratic


def suggest_form(form: str) -> str:
    """Return the hint for a format, or an empty string for an unknown format."""
    return _FORMATS.get(form, "")


def find_equal_items(value: Any) -> tuple[int, int] | None:
    """Return the indices of an array's first two equal items.

    Return `None` if no items are equal or the array is too long to compare.
    """
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
    """Return the key that wraps all arguments, as in `{"args": {…}}`, or `None`."""
    if not isinstance(value, dict) or len(value) != 1:
        return None
    [(name, inner)] = value.items()
    if isinstance(inner, str) and name in _ENVELOPES and inner.lstrip().startswith("{"):
        try:
            inner = json.loads(inner)
        except (ValueError, RecursionError):
            return None
    if name in known or not isinstance(inner, dict):
        return None
    if name in _ENVELOPES:
        return name if not known or not inner.keys().isdisjoint(known) else None
    return name if inner and inner.keys() <= set(known) else None  # such as the tool's name


def find_missing_tag(
    root: Mapping[str, Any], alternatives: Sequence[Json], value: Any
) -> tuple[str, Sequence[Any]] | None:
    """Return the missing key that distinguishes alternatives, with its values, or `None`.

    Args:
        root: The root schema, for references.
        alternatives: The alternatives that match `value`.
        value: An object in which the key is missing.
    """
    if not is_mapping(value) or not alternatives:
        return None
    tags_of = [_find_tags(root, schema, value) for schema in alternatives]
    key = next((key for key in tags_of[0] if all(key in tags for tags in tags_of)), None)
    return None if key is None else (key, [option for tags in tags_of for option in tags[key]])


def _find_tags(root: Mapping[str, Any], schema: Any, value: Mapping[str, Any]) -> dict[str, Sequence[Any]]:
    """Return the missing properties with `const` or `enum`, and their permitted values."""
    properties = _get_keyword(root, schema, "properties")
    tags: dict[str, Sequence[Any]] = {}
    for key, inner in properties.items() if is_mapping(properties) else ():
        if key not in value and is_mapping(inner) and ("const" in inner or is_list(inner.get("enum"))):
            tags[key] = [inner["const"]] if "const" in inner else inner["enum"]
    return tags


def suggest_exclusive_keys(root: Mapping[str, Any], alternatives: Sequence[Json]) -> str:
    """Return a hint about mutually exclusive keys if each alternative requires its own keys."""
    required = [_get_keyword(root, each, "required") for each in alternatives]
    keys_of = [[str(key) for key in keys] if is_list(keys) else [] for keys in required]
    count = Counter(key for keys in keys_of for key in set(keys))
    own = [[json.dumps(key, ensure_ascii=False) for key in keys if count[key] == 1] for keys in keys_of]
    return f"; send only {' or '.join(' with '.join(keys) for keys in own)}" if own and all(own) else ""


def _get_keyword(root: Mapping[str, Any], schema: Any, keyword: str) -> Json:
    """Return a keyword's value in a schema or its `$ref` target, or `None`."""
    if is_mapping(schema) and "$ref" in schema:
        schema = find_target(root, schema["$ref"])
    value: Json = schema.get(keyword) if is_mapping(schema) else None
    return value


def suggest_patterns(holder: Json) -> str:
    """Return a hint about a schema's `patternProperties`, or an empty string if there are none."""
    patterns: Json = holder.get("patternProperties") if is_mapping(holder) else None
    return f"; other keys must match {' or '.join(patterns)}" if is_mapping(patterns) and patterns else ""


def find_causes(schema: Json, keyword: str, instance: Mapping[str, Any], missing: str) -> Sequence[str]:
    """Return the keys in a value that require a missing key (JSON Schema, `dependentRequired`).

    Args:
        schema: The schema with the keyword.
        keyword: `dependentRequired`, or `dependencies` in older dialects.
        instance: The object.
        missing: The missing key.
    """
    rules: Json = schema.get(keyword) if isinstance(schema, dict) else None
    needs = rules.items() if isinstance(rules, dict) else ()
    return [name for name, keys in needs if name in instance and isinstance(keys, list) and missing in keys]
