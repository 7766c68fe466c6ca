"""Estimates which tools return results that could fill a model's context."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stubwright.jsonschema.sizes import Known, estimate_characters
from stubwright_runtime.values.tokens import estimate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stubwright.ir import Json

LARGE: Final = 10_000
"""The number of tokens from which a result counts as large."""

_SHOWN: Final = 5


def estimate_tokens(schemas: Mapping[str, Json]) -> dict[str, int]:
    """Return the estimated number of tokens in a result of each schema."""
    known: Known = {}
    return {name: estimate(estimate_characters(schema, known)) for name, schema in schemas.items()}


def report(sizes: Mapping[str, int]) -> list[str]:
    """Return a note on tools with large results.

    Args:
        sizes: The estimated tokens per result, keyed by tool.
    """
    large = sorted((name for name, size in sizes.items() if size >= LARGE), key=lambda name: -sizes[name])
    if not large:
        return []
    more = f" and {len(large) - _SHOWN} more" if len(large) > _SHOWN else ""
    listed = ", ".join(f"`{name}` {sizes[name]:,}" for name in large[:_SHOWN])
    return [f"tools with large results (estimated tokens): {listed}{more}; reduce them with `select` or `page`"]
