"""The number of cases that a schema has if its alternatives are multiplied out, as `jsonschema-rs` does for proofs.

The library has no limit of time: some seven conditionals in one `allOf` take it seconds for each schema, and it then
decides nothing. The count depends on the schema alone, so that verdicts are the same on each machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stubwright.jsonschema import dialects

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stubwright.ir import Json
    from stubwright.jsonschema.instances.parts import Judge

_MOST: Final = 63
"""Cases of a schema that the library proves within a second."""

_FEW: Final = 16
"""Cases of a part that cost nothing, however many such parts there are."""

_DEEPEST: Final = 20


def is_costly(judge: Judge) -> bool:
    """Return whether the library may need more than a second for a schema."""
    total = 0
    for _, schema in dialects.iterate_subschemas(judge.schema, judge.dialect):
        factors = _list_factors(schema, judge.targets, 0)
        cases = _multiply(factors) if len(factors) > 1 else 1  # a union alone is not multiplied
        total += cases if cases > _FEW else 0
        if total > _MOST:
            return True
    return False


def _list_factors(schema: Json, targets: Mapping[str, Json], depth: int) -> list[int]:
    """Return the numbers of alternatives of the parts that apply to the same instance, without ones."""
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
    """Return the product, or a number above the limit."""
    product = 1
    for factor in factors:
        product = min(product * factor, _MOST + 1)
    return product
