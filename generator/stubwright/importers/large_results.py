"""Results that would fill a model's context: which they are, about."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from stubwright.jsonschema.sizes import Known, estimate_characters
from stubwright_runtime.values.tokens import estimate

if TYPE_CHECKING:
    from collections.abc import Mapping

    from stubwright.ir import Json

LARGE: Final = 10_000
"""Tokens from which a result is large."""

_SHOWN: Final = 5


def estimate_tokens(schemas: Mapping[str, Json]) -> dict[str, int]:
    """About how many tokens a result takes, by the schema of each."""
    known: Known = {}
    return {name: estimate(estimate_characters(schema, known)) for name, schema in schemas.items()}


def note(sizes: Mapping[str, int]) -> list[str]:
    """Return a note on the tools whose results are large.

    Args:
        sizes: About how many tokens a result of each takes.
    """
    large = sorted((name for name, size in sizes.items() if size >= LARGE), key=lambda name: -sizes[name])
    if not large:
        return []
    more = f" and {len(large) - _SHOWN} more" if len(large) > _SHOWN else ""
    listed = ", ".join(f"`{name}` {sizes[name]:,}" for name in large[:_SHOWN])
    return [f"results that may be large, in tokens, about: {listed}{more}; `select` and `page` return parts of them"]
