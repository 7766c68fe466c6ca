"""Batches that a server sends (MCP 2025-03-26, basic, "Batching"), which clients of that revision have to read."""

from __future__ import annotations

from typing import Any, Final

from ...values.json import Json

_MOST_MESSAGES: Final = 1000
"""Messages of the largest batch that is read, as in servers."""


def split_batch(text: bytes) -> list[bytes]:
    """Return the messages of a batch, each as text. Any other text is returned unchanged, as the only one."""
    batch = _parse_batch(text)
    if not 0 < len(batch) <= _MOST_MESSAGES:
        return [text]
    from pydantic_core import to_json

    return [to_json(message) for message in batch]


def find_excess(text: bytes) -> str | None:
    """Return the reason why a batch is not read, as the end of a sentence; `None` for a smaller one and other texts."""
    size = len(_parse_batch(text))
    if size <= _MOST_MESSAGES:
        return None
    return f"it is a batch of {size:,} messages, and a client reads batches of at most {_MOST_MESSAGES:,}"


def _parse_batch(text: bytes) -> list[Any]:
    """Return the messages of a batch; none of any other text."""
    if text.lstrip()[:1] != b"[":
        return []
    from pydantic_core import from_json

    try:
        batch: Json = from_json(text)
    except ValueError:
        return []
    return batch if isinstance(batch, list) and all(isinstance(each, dict) for each in batch) else []
