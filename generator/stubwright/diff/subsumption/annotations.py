"""Removes annotations from schemas and compares JSON values."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from stubwright.ir import Json
    from stubwright.jsonschema.dialects import Dialect

_REUSABLE: Final = ("$defs", "definitions")
_WITHOUT_MEANING: Final = frozenset(
    {"title", "description", "default", "examples", "$comment", "deprecated", "readOnly", "writeOnly"}
)


def strip_annotations(schema: Json, dialect: Dialect) -> Json:
    """Return a copy of the schema without annotations."""
    if not isinstance(schema, dict):
        return schema
    stripped: dict[str, Json] = {}
    for keyword, value in schema.items():
        if keyword in _WITHOUT_MEANING or not (keyword in dialect.keywords or isinstance(value, dict | list)):
            continue  # a reference may point into an unknown keyword, but not into a scalar
        if keyword in (*dialect.named, *_REUSABLE) and isinstance(value, dict):
            stripped[keyword] = {name: strip_annotations(inner, dialect) for name, inner in value.items()}
        elif keyword in dialect.listed and isinstance(value, list):
            stripped[keyword] = [strip_annotations(inner, dialect) for inner in value]
        else:
            stripped[keyword] = strip_annotations(value, dialect) if keyword in dialect.single else value
    return stripped


def are_same(first: Json, second: Json) -> bool:
    """Return whether two JSON values are the same except for key order. `1` and `1.0` differ."""
    return json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
