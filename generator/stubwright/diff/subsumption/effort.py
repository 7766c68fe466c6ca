"""Estimates the cost of a proof in `jsonschema-rs`, which multiplies out a schema's alternatives.

The library has no time limit: seven conditionals in one `allOf` take seconds and give no result. The estimate depends
only on the schema, so that results are the same on every machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stubwright.jsonschema import dialects

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stubwright.ir import Json
    from stubwright.jsonschema.instances.parts import SchemaValidator

_MOST: Final = 63
"""The maximum number of cases in a schema, which the library proves within a second."""

_FEW: Final = 16
"""The maximum number of cases in a part with negligible cost."""

_DEEPEST: Final = 20


def is_costly(validator: SchemaValidator) -> bool:
    """Return whether the library might need more than a second for a schema."""
    total = 0
    for _, schema in dialects.iterate_subschemas(validator.schema, validator.dialect):
        factors = _list_factors(schema, validator.targets, 0)
        cases = _multiply(factors) if len(factors) > 1 else 1  # the library does not multiply a single union
        total += cases if cases > _FEW else 0
        if total > _MOST:
            return True
    return False


def _list_factors(schema: Json, targets: Mapping[str, Json], depth: int) -> list[int]:
    """Return the number of alternatives of each part that applies to the same instance.

    Omit parts with one alternative.
    """
    if not isinstance(schema, dict) or depth > _DEEPEST:
        return []

    def count(part: Json) -> int:
        return _multiply(_list_factors(part, targets, depth + 1))

    factors = [count(part) for part in _list(schema.get("allOf"))]
    factors += [sum(map(count, _list(schema.get(key)))) for key in ("anyOf", "oneOf")]
    if "if" in schema:
        factors.append(count(schema.get("then")) + count(schema.get("else")))
    if isinstance(reference := schema.get("$ref"), str):
        factors.append(count(targets.get(reference)))
    for key in ("dependentSchemas", "dependencies"):
        if isinstance(dependent := schema.get(key), dict):
            factors += [1 + count(part) for part in dependent.values()]
    return [factor for factor in factors if factor > 1]


def _list(value: Json) -> list[Json]:
    return value if isinstance(value, list) else []


def _multiply(factors: Sequence[int]) -> int:
    product = 1
    for factor in factors:
        product = min(product * factor, _MOST + 1)
    return product
