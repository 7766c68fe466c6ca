"""Finds regular expressions in schemas and checks whether the server's validator accepts them."""

from __future__ import annotations

import re
from functools import cache
from typing import TYPE_CHECKING

from stubwright.diagnostics import Place

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stubwright.ir import Json
    from stubwright.jsonschema.references import Outline


def is_accepted(schema: Json) -> bool:
    """Return whether the validator accepts a schema."""
    from stubwright_runtime.schema.validation import compile_schema

    try:
        compile_schema(schema, formats=False)
    except ValueError:
        return False
    return True


LONGEST = 256 * 1024
"""The maximum length of a regular expression, since the validator is slow to reject longer ones."""

_QUANTIFIER = re.compile(r"\{(\d+)(?:,(\d*))?\}")


def is_too_large(text: str) -> bool:
    """Return whether the validator rejects a regular expression because of the size, not the syntax."""
    if len(text) > LONGEST:
        return True
    return not is_expression(text) and is_expression(_QUANTIFIER.sub(_shrink, text))


def _shrink(match: re.Match[str]) -> str:
    """Return a repetition with smaller bounds. Return an invalid repetition unchanged."""
    least, most = match.groups()
    return match[0] if most and int(most) < int(least) else "{0,1}"


@cache
def is_expression(text: str) -> bool:
    """Return whether the validator accepts a regular expression."""
    if len(text) > LONGEST:
        return False
    return is_accepted({"pattern": text})


def find_patterns(outline: Outline) -> Iterator[tuple[Place, str]]:
    """Yield the regular expressions in a schema, with their locations."""
    for pointer, schema in outline.find_having("pattern"):
        if isinstance(schema["pattern"], str):
            yield outline.locate(pointer) / "pattern", schema["pattern"]
    for pointer, schema in outline.find_having("patternProperties"):
        if isinstance(schema["patternProperties"], dict):
            place = outline.locate(pointer) / "patternProperties"
            yield from (((place / text).point_at_key(), text) for text in schema["patternProperties"])
