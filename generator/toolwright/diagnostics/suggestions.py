"""Words for values and suggestions in messages.

Takes values and names; gives text. It knows nothing of manifests.
"""

from __future__ import annotations

import difflib
from typing import TYPE_CHECKING

from toolwright.compile.syntax.positions import shorten

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from toolwright.ir import Json

KINDS = {
    "object": "a mapping",
    "array": "a list",
    "string": "a string",
    "integer": "a whole number",
    "number": "a number",
    "boolean": "a boolean",
    "null": "`null`",
}
"""What a person calls a value of each type of JSON Schema."""


def found(value: Json) -> str:
    """What stands in the source: `the string "abc"`, `a mapping`."""
    if isinstance(value, dict):
        return "a mapping" if value else "an empty mapping"
    if isinstance(value, list):
        return "a list" if value else "an empty list"
    if value is None:
        return "`null`"
    if isinstance(value, bool):
        return f"`{str(value).lower()}`"
    if isinstance(value, str):
        return (
            f"the string `{shorten(value)}`" if value.strip() else "an empty string" if not value else "a blank string"
        )
    return f"the number `{shorten(str(value))}`"


def quoted(values: Iterable[Json]) -> str:
    """Values for a message: "`a`, `b` or `c`"."""
    *most, last = [f"`{shown(value)}`" for value in values]
    return f"{', '.join(most)} or {last}" if most else last


def shown(value: Json) -> str:
    """A scalar as YAML and JSON write it, without quotes."""
    return (
        {True: "true", False: "false", None: "null"}[value]
        if value is None or value is True or value is False
        else str(value)
    )


def is_quoted(value: Json, types: Iterable[str]) -> bool:
    """Whether a string holds what would be a value of one of `types` without its quotes."""
    if not isinstance(value, str):
        return False
    return ("boolean" in types and value in ("true", "false")) or (
        ("integer" in types or "number" in types) and value.isdecimal() and value.isascii()
    )


def nearest(word: str, known: Sequence[str], cutoff: float = 0.62) -> str | None:
    """The known word that somebody who wrote `word` may have meant; None where there is none.

    Words that differ in case, `-` and `_` only are the same for this.
    """
    plain = _plain(word)
    same = next((other for other in known if _plain(other) == plain), None)
    return same or next(iter(difflib.get_close_matches(word, known, 1, cutoff)), None)


def _plain(word: str) -> str:
    return word.replace("-", "").replace("_", "").casefold()
