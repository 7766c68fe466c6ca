"""The lists of a server."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class ServerListing:
    """The unvalidated lists of a server.

    Attributes:
        revision: The protocol revision of the requests.
        info: Its `serverInfo`, with `instructions`.
        capabilities: Its capabilities.
        sections: The entries of each list.
        notes: Notes on requests that failed.
    """

    revision: str
    info: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    sections: Mapping[str, Sequence[Any]]
    notes: tuple[str, ...] = ()
