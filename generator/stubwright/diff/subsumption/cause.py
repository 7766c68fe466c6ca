"""Finds the keyword that prevents a comparison of two schemas, by omitting each keyword in turn."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Final

from stubwright.diff.subsumption.proof import SchemaValidator

if TYPE_CHECKING:
    from stubwright.ir import Json

_HARD: Final = (
    *("$dynamicRef", "$recursiveRef", "$ref", "unevaluatedProperties", "unevaluatedItems", "not", "oneOf", "if"),
    *("contains", "dependentSchemas", "dependencies", "patternProperties", "propertyNames", "pattern", "format"),
    *("uniqueItems", "multipleOf", "anyOf", "allOf", "additionalProperties", "items", "maxProperties", "minProperties"),
    *("maxLength", "minLength", "enum", "const", "type", "required", "properties"),
)
"""Keywords, hardest to compare first."""


def find_culprit(
    old: SchemaValidator, new: SchemaValidator, is_decided: Callable[[SchemaValidator, SchemaValidator], bool]
) -> str | None:
    """Return a keyword that, if removed, makes the comparison decidable, or None."""
    for keyword in _HARD:
        if not (_has(old.schema, keyword) or _has(new.schema, keyword)):
            continue
        without = [SchemaValidator(_drop(validator.schema, keyword), validator.formats) for validator in (old, new)]
        if is_decided(*without):
            return keyword
    return None


def _has(schema: Json, keyword: str) -> bool:
    if isinstance(schema, dict):
        return keyword in schema or any(_has(inner, keyword) for inner in schema.values())
    return isinstance(schema, list) and any(_has(inner, keyword) for inner in schema)


def _drop(schema: Any, keyword: str, *, is_named: bool = False) -> Any:
    """Remove a keyword from a schema, but keep properties with that name."""
    if isinstance(schema, list):
        return [_drop(inner, keyword) for inner in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: (
            inner if key in _VALUES and not is_named else _drop(inner, keyword, is_named=key in _NAMED and not is_named)
        )
        for key, inner in schema.items()
        if is_named or key != keyword
    }


_NAMED: Final = frozenset({"properties", "patternProperties", "$defs", "definitions", "dependentSchemas"})
_VALUES: Final = frozenset({"enum", "const", "default", "examples", "required", "dependentRequired"})
