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
        revision: The revision of the protocol that the requests used.
        info: Its `serverInfo`, with `instructions`; unchecked.
        capabilities: Its capabilities, unchecked.
        sections: The entries of each list that it has, unchecked.
        notes: Descriptions of the requests that it did not answer.
    """

    revision: str
    info: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    sections: Mapping[str, Sequence[Any]]
    notes: tuple[str, ...] = ()
