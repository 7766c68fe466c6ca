"""The lists of a server, independent of the client that asked for them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class ServerListing:
    """A server's description of itself.

    Attributes:
        revision: The revision of the protocol that it was asked in.
        info: Its `serverInfo`, with `instructions`; as it came, of whatever type.
        capabilities: Its capabilities, as they came.
        sections: The entries of each list that it has, as they came.
        notes: The requests that it did not answer, in words.
    """

    revision: str
    info: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    sections: Mapping[str, Sequence[Any]]
    notes: tuple[str, ...] = ()
