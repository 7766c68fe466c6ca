"""Batches that a server sends (MCP 2025-03-26, basic, "Batching"), which clients of that revision have to read.

Takes the text of a line, a body or an event; gives the text of each message in it, since the SDK reads no batches.
"""

from __future__ import annotations

from typing import Final

from ...values.json import Json

_MOST_MESSAGES: Final = 1000
"""Messages of the largest batch that is read: as many as servers read."""


def split_batch(text: bytes) -> list[bytes]:
    """Return the messages of a batch, each as text. Any other text is returned as it is, as the only one."""
    if text.lstrip()[:1] != b"[":
        return [text]
    from pydantic_core import from_json, to_json

    try:
        batch: Json = from_json(text)
    except ValueError:
        return [text]
    if not isinstance(batch, list) or not 0 < len(batch) <= _MOST_MESSAGES:
        return [text]
    return [to_json(message) for message in batch] if all(isinstance(each, dict) for each in batch) else [text]
