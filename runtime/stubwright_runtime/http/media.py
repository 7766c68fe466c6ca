"""Media types of texts.

Takes a media type without parameters, in lower case. It imports nothing.
"""

from __future__ import annotations

from typing import Final

_TEXTS: Final = frozenset(
    f"application/{name}"
    for name in (
        *("graphql", "javascript", "json-seq", "jsonl", "jsonlines", "jwt", "ndjson", "pem-certificate-chain", "sql"),
        *("toml", "x-javascript", "x-jsonlines", "x-ndjson", "x-sh", "x-toml", "x-www-form-urlencoded", "x-yaml"),
        *("xml", "yaml"),
    )
)
"""Those that do not say so."""


def is_text(media: str) -> bool:
    """Tell whether what is of this type is a text, and no JSON document."""
    return media.startswith("text/") or media.endswith(("+xml", "+yaml", "+jwt")) or media in _TEXTS
