"""From bytes to an object of JSON, as far as all parsers read it alike.

Takes a message; gives an object, or nothing where the SDK's parser has to look at it: it repairs halves of surrogate
pairs, and refuses what is nested too deeply, in its own words.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any, Final

from ...values.nesting import DEEPEST, is_too_deep


def _finite(text: str) -> float:
    number = float(text)
    if not isfinite(number):
        raise ValueError(text)
    return number


def _refuse(text: str) -> float:
    raise ValueError(text)


_DECODER: Final = json.JSONDecoder(parse_float=_finite, parse_constant=_refuse)


def parse(data: bytes) -> dict[str, Any] | None:
    """The object that a message is; `None` where the SDK has to look at it."""
    if b"\\ud" in data or b"\\uD" in data:
        return None
    try:
        value: object = _DECODER.decode(data.decode())
    except (ValueError, RecursionError):
        return None
    if type(value) is not dict or (data.count(b"[") + data.count(b"{") > DEEPEST and is_too_deep(value)):
        return None
    return value
