"""Parses JSON and rejects duplicate keys and numbers outside the float range.

It does not import the rest of the compiler, so that commands start fast.
"""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

from stubwright_runtime.values.json import refuse_constant

if TYPE_CHECKING:
    from stubwright.ir import Json


class DuplicateKeyError(Exception):
    """An object has duplicate keys, so its value is ambiguous (RFC 8259, section 4)."""


def load(text: str) -> Any:
    """Parse a JSON value.

    Raises:
        ValueError: The text is not JSON, or contains a number that is not finite.
        RecursionError: The nesting is too deep for Python's parser.
        DuplicateKeyError: An object has duplicate keys.
    """
    return json.loads(text, object_pairs_hook=_make_object, parse_constant=refuse_constant, parse_float=_parse_float)


def _make_object(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    value = dict(pairs)
    if len(value) < len(pairs):
        first = {key: index for index, (key, _) in reversed([*enumerate(pairs)])}
        raise DuplicateKeyError(next(key for index, (key, _) in enumerate(pairs) if first[key] < index))
    return value


def _parse_float(text: str) -> float:
    value = float(text)
    if math.isinf(value):
        raise ValueError(f"{text} is too large for a number")
    return value
