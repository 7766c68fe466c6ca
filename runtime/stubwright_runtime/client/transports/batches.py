"""Splits JSON-RPC batches, which clients must accept (MCP 2025-03-26, basic, "Batching")."""

from __future__ import annotations

from typing import Any, Final

from ...values.json import Json

_MOST_MESSAGES: Final = 1000
"""The maximum number of messages in a batch, also in our servers."""


def split_batch(text: bytes) -> list[bytes]:
    """Split a batch into its messages as JSON; return any other text unchanged as the only item."""
    batch = _parse_batch(text)
    if not 0 < len(batch) <= _MOST_MESSAGES:
        return [text]
    from pydantic_core import to_json

    return [to_json(message) for message in batch]


def find_excess(text: bytes) -> str | None:
    """Return a clause that describes a batch with too many messages, or `None` for any other text."""
    size = len(_parse_batch(text))
    if size <= _MOST_MESSAGES:
        return None
    return f"it is a batch of {size:,} messages, but a client accepts at most {_MOST_MESSAGES:,} per batch"


def _parse_batch(text: bytes) -> list[Any]:
    if text.lstrip()[:1] != b"[":
        return []
    from pydantic_core import from_json

    try:
        batch: Json = from_json(text)
    except ValueError:
        return []
    return batch if isinstance(batch, list) and all(isinstance(each, dict) for each in batch) else []
