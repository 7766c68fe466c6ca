"""Proofs about formats that accept only values that Python represents exactly (`python: {formats: strict}`)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from stubwright.codegen.models.types import BASE64, FORMATS
from stubwright.diff.subsumption.upgrade import change_below
from stubwright.jsonschema.formats import get_settings

if TYPE_CHECKING:
    from stubwright.ir import Json
    from stubwright.jsonschema.dialects import Dialect
    from stubwright.jsonschema.instances.parts import SchemaValidator

_TYPED: Final = FORMATS - {BASE64}
_PATTERN: Final = (
    "^([A-Za-z0-9+/]{4})*([A-Za-z0-9+/][AQgw]==|[A-Za-z0-9+/]{2}[AEIMQUYcgkosw048]=)?$"  # RFC 4648, section 4
)
_NOT_MONOTONE: Final = frozenset({"not", "if", "oneOf", "contains", "unevaluatedItems", "unevaluatedProperties"})
"""Non-monotone keywords: narrowing their subschema can widen the whole schema."""


def widen(schema: Json, dialect: Dialect, *, asserts_all: bool) -> Json:
    """Return a schema with ordinary formats that accepts at least what `schema` accepts with exact formats.

    If `asserts_all` is true, keep formats without Python types. Base64 becomes a pattern, which is exact.
    """
    if not isinstance(schema, dict):
        return schema
    widened = {
        keyword: change_below(keyword, value, dialect, lambda inner: widen(inner, dialect, asserts_all=asserts_all))
        for keyword, value in schema.items()
        if keyword != "format" or asserts_all or value in _TYPED
    }
    if schema.get("contentEncoding") == BASE64 and "contentEncoding" in dialect.keywords:
        widened["allOf"] = [*widened.get("allOf", ()), {"pattern": _PATTERN}]
    return widened


def prevents_proof(wide: SchemaValidator, narrow: SchemaValidator) -> bool:
    """Return whether widening can hide an incompatibility, so that a proof holds only for the widened schemas.

    Widening can hide one if only `wide` is exact, if only `narrow` is exact and has a non-monotone keyword, or if both
    are exact and a constant matches a format inexactly. Formats without Python types do not matter.
    """
    are_exact = [get_settings(validator.formats)["exact"] for validator in (wide, narrow)]
    keywords = [(key, value) for validator in (wide, narrow) for key, value in _list_keywords(validator.schema)]
    if not any(are_exact) or not any(key == "format" and value in _TYPED for key, value in keywords if _is_text(value)):
        return False
    if all(are_exact):
        return any(
            _is_inexact(text) for key, value in keywords if key in ("const", "enum") for text in _list_texts(value)
        )
    return are_exact[0] or any(key in _NOT_MONOTONE for key, _ in _list_keywords(narrow.schema))


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def _is_inexact(text: str) -> bool:
    """Return whether a string matches a format whose Python type cannot represent the string exactly."""
    from stubwright_runtime.schema.exact_formats import fits, is_valid

    return any(is_valid(form, text) and not fits(form, text) for form in _TYPED)


def _list_keywords(value: Json) -> Iterator[tuple[str, Json]]:
    if isinstance(value, dict):
        yield from value.items()
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _list_keywords(below)


def _list_texts(value: Json) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    for below in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from _list_texts(below)
