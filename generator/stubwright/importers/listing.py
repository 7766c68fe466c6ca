"""What a server says that it has, whoever asked it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class ServerListing:
    """What a server says of itself.

    Attributes:
        revision: The revision of the protocol that it was asked in.
        info: Its `serverInfo`, with `instructions`; as it came, of whatever type.
        capabilities: Its capabilities, as they came.
        sections: The entries of each list that it has, as they came.
        notes: What it did not answer, in words.
    """

    revision: str
    info: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    sections: Mapping[str, Sequence[Any]]
    notes: tuple[str, ...] = ()
