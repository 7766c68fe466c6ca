"""Descriptions of tools and schemas, cut where they are long.

Takes a text, or a schema in JSON Schema 2020-12; gives it with descriptions of up to so many characters, which end with
a sentence where that leaves most of the text, else with a word.
"""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from toolwright.jsonschema import dialects
from toolwright.jsonschema.dialects import DRAFT_2020_12 as DIALECT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from toolwright.ir import Json

_SENTENCE: Final = re.compile(r"[.!?](?=\s)|\u3002|\n\s*\n")
_WORD: Final = re.compile(r"\s+(?=\S*$)")


def cut(text: str, most: int) -> str:
    """The text, or where it has more than `most` characters, its beginning with `…`, which has no more than these."""
    if len(text) <= most:
        return text
    kept = text[: most - 1]
    ends = [found.end() for found in _SENTENCE.finditer(text[:most])]
    if ends and most // 2 <= ends[-1] <= most - 2:
        return f"{kept[: ends[-1]].rstrip()} …"
    at_word = _WORD.search(kept) if text[most - 1 : most].strip() else None
    return f"{(kept[: at_word.start()] if at_word else kept).rstrip(' ,;:-')}…"


def of_schema(schema: Json, most: int) -> Json:
    """A schema whose descriptions are cut; names of properties and values are left as they are."""
    if not isinstance(schema, dict):
        return schema
    made: Any = json.loads(json.dumps(schema))
    for holder in _described(made):
        holder["description"] = cut(holder["description"], most)
    return made


def saved(schema: Json, most: int) -> int:
    """The characters that `of_schema` would take away."""
    texts = [holder["description"] for holder in _described(schema)]
    return sum(len(text) - len(cut(text, most)) for text in texts)


def _described(schema: Json) -> Iterator[dict[str, Any]]:
    """The schemas in a schema, itself included, that have a description."""
    for _, below in dialects.subschemas(schema, DIALECT):
        if isinstance(below, dict) and isinstance(below.get("description"), str):
            yield below
