"""Truncates descriptions: after a sentence if most of the text remains, else after a word."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, Any, Final

from stubwright.jsonschema import dialects
from stubwright.jsonschema.dialects import DRAFT_2020_12 as DIALECT

if TYPE_CHECKING:
    from collections.abc import Iterator

    from stubwright.ir import Json

_SENTENCE: Final = re.compile(r"[.!?](?=\s)|\u3002|\n\s*\n")
_WORD: Final = re.compile(r"\s+(?=\S*$)")


def truncate(text: str, most: int) -> str:
    """Truncate a string to at most `most` characters, including `…`."""
    if len(text) <= most:
        return text
    beginning = text[: most - 1]
    ends = [match.end() for match in _SENTENCE.finditer(text[:most])]
    if ends and most // 2 <= ends[-1] <= most - 2:
        return f"{beginning[: ends[-1]].rstrip()} …"
    at_word = _WORD.search(beginning) if text[most - 1 : most].strip() else None
    return f"{(beginning[: at_word.start()] if at_word else beginning).rstrip(' ,;:-')}…"


def truncate_schema(schema: Json, most: int) -> Json:
    """Truncate each description in a schema to at most `most` characters."""
    if not isinstance(schema, dict):
        return schema
    copy: Any = json.loads(json.dumps(schema))
    for described in _find_described(copy):
        described["description"] = truncate(described["description"], most)
    return copy


def count_saved(schema: Json, most: int) -> int:
    """Count the characters that `truncate_schema` would remove."""
    texts = [described["description"] for described in _find_described(schema)]
    return sum(len(text) - len(truncate(text, most)) for text in texts)


def _find_described(schema: Json) -> Iterator[dict[str, Any]]:
    for _, subschema in dialects.iterate_subschemas(schema, DIALECT):
        if isinstance(subschema, dict) and isinstance(subschema.get("description"), str):
            yield subschema
