"""Copies arguments into results: `get_item(sku="TEA-01")` returns an item whose `sku` is TEA-01."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from stubwright_runtime.values.text import split_pointer

_WORDS: Final = frozenset({"title", "description", "default", "examples", "example", "deprecated", "$comment"})
"""Keywords that do not constrain values."""

_CHAIN: Final = 20  # circular references


def echo(value: Any, schema: Any, arguments: Mapping[str, Any], input_schema: Any) -> Any:
    """Return a value in which each property with the name and type of an argument has that argument's value.

    Args:
        value: A value that matches `schema`. Nested objects also change, but lists do not.
        schema: The result's schema, including `$defs`.
        arguments: The call's arguments.
        input_schema: The arguments' schema, including `$defs`.
    """
    properties = _properties(input_schema, input_schema)
    known = {
        name: (sent, _resolve_schema(properties[name], input_schema))
        for name, sent in arguments.items()
        if name in properties
    }
    return _with(value, schema, schema, known)


def _with(value: Any, schema: Any, root: Any, known: Mapping[str, tuple[Any, Any]]) -> Any:
    if not isinstance(value, dict):
        return value
    properties = _properties(schema, root)
    copied = dict(value)
    for name in value.keys() & properties.keys():
        sent, plain = known.get(name, (None, None))
        if name in known and _resolve_schema(properties[name], root) == plain:
            copied[name] = sent
        else:
            copied[name] = _with(value[name], properties[name], root, known)
    return copied


def _properties(schema: Any, root: Any) -> Mapping[str, Any]:
    target = _target(schema, root)
    properties = target.get("properties") if isinstance(target, dict) else None
    return properties if isinstance(properties, dict) else {}


def _resolve_schema(schema: Any, root: Any) -> Any:
    """Return a schema with resolved references and without descriptions, for comparison."""
    target = _target(schema, root)
    return {key: value for key, value in target.items() if key not in _WORDS} if isinstance(target, dict) else target


def _target(schema: Any, root: Any) -> Any:
    for _ in range(_CHAIN):
        reference = schema.get("$ref") if isinstance(schema, dict) else None
        if not isinstance(reference, str) or not reference.startswith("#/"):
            return schema
        schema = root
        for step in split_pointer(reference[1:]):
            schema = schema.get(step) if isinstance(schema, dict) else None
    return schema
