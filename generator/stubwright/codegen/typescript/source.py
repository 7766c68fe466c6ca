"""Converts values to TypeScript source. Manifest text reaches a module only through this module."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

from stubwright.pycode import Code, fill, join

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stubwright.ir import Json

_KEY = re.compile(r"[A-Za-z_$][A-Za-z0-9_$]*")
_SAFE = 2**53


def format_value(value: Json) -> Code:
    """Return a one-line expression equal to a JSON value. Parts that are source already stay unchanged."""
    match value:
        case Code():
            return value
        case list():
            return fill("[{}]", join(", ", map(format_value, value)))
        case dict():
            # As a plain key of an object literal, `__proto__` would set the prototype.
            keys = [Code('["__proto__"]') if key == "__proto__" else format_key(key) for key in value]
            pairs = [fill("{}: {}", key, format_value(each)) for key, each in zip(keys, value.values(), strict=True)]
            return fill("{{ {} }}" if pairs else "{{}}", *([join(", ", pairs)] if pairs else []))
        case str():
            return Code(json.dumps(value, ensure_ascii=not value.isprintable()))
        case int() if abs(value) >= _SAFE:
            return Code(_round(value))
        case _:
            return Code(json.dumps(value))


def _round(value: int) -> str:
    """Round a number to a double's precision, so that linters do not report a loss of precision."""
    try:
        return json.dumps(float(value))
    except OverflowError:
        return "Infinity" if value > 0 else "-Infinity"


def format_member(value: Json) -> Code:
    """Return the literal type for an enumeration's member, or `number` if JavaScript cannot represent it exactly."""
    if isinstance(value, int) and not isinstance(value, bool) and abs(value) >= _SAFE:
        return fill("number")
    return format_value(value)


def format_key(name: str) -> Code:
    """Format a property key, in quotes if it is not an identifier."""
    return Code(name) if _KEY.fullmatch(name) else format_value(name)


def format_doc(text: str, indent: int = 0, tags: Sequence[str] = ()) -> Code:
    """Return a TSDoc comment with its line break, indented by `indent` spaces.

    Return an empty string without text and tags.
    """
    plain = text.replace("\r\n", "\n").replace("\r", "\n").replace("``", "`").expandtabs(4).strip()
    lines = [*plain.split("\n")] if plain else []
    lines += [*([""] if lines and tags else []), *(" ".join(tag.split()) for tag in tags)]
    shown = ["".join(char if char.isprintable() else "?" for char in line).replace("*/", "*\\/") for line in lines]
    margin = " " * indent
    if len(shown) <= 1:
        return Code("".join(f"{margin}/** {line} */\n" for line in shown))
    body = "".join(f"{margin} * {line}".rstrip() + "\n" for line in shown)
    return Code(f"{margin}/**\n{body}{margin} */\n")


def format_comment(text: str) -> Code:
    """Return a one-line comment, with unprintable characters replaced."""
    return Code(f"// {''.join(char if char.isprintable() else '?' for char in text)}")
