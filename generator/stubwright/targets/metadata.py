"""Keys that hosts read in the `_meta` of tools and resources: a table of data with its sources.

All other keys in `_meta` are between a server and its clients.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

Kind: TypeAlias = Literal["tool", "resource"]

_FILE: Final = Path(__file__).with_name("metadata.json")


@dataclass(frozen=True, slots=True)
class Key:
    """A key of `_meta` that a host reads.

    Attributes:
        name: The key.
        host: The host that reads it.
        says: Its meaning.
        takes: The values that it may have, in words.
        schema: The same as a JSON Schema.
        source: The URL of the evidence.
        read: The day on which that was read, as `2026-11-26`.
        certainty: `documented` by the host, or `reported` by users.
    """

    name: str
    host: str
    says: str
    takes: str
    schema: dict[str, Any]
    source: str
    read: str
    certainty: str


@cache
def load_keys(kind: Kind) -> Mapping[str, Key]:
    """Return the keys that hosts read of tools or of resources, by name."""
    table: dict[str, dict[str, Any]] = json.loads(_FILE.read_text("utf-8"))[kind]
    return {name: Key(name, **entry) for name, entry in table.items()}
