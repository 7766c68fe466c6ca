"""The `_meta` keys on tools and resources that hosts read, with sources.

All other keys in `_meta` are private to a server and its clients.
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
    """A `_meta` key that a host reads.

    Attributes:
        name: The key in `_meta`.
        host: The host that reads the key.
        says: The key's meaning, as a phrase.
        takes: The valid values, as a phrase.
        schema: The valid values, as a JSON Schema.
        source: The URL of the evidence.
        read: The date when the source was read, such as `2026-11-26`.
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
    """Return the keys that hosts read on tools or on resources, keyed by name."""
    table: dict[str, dict[str, Any]] = json.loads(_FILE.read_text("utf-8"))[kind]
    return {name: Key(name, **entry) for name, entry in table.items()}
