"""A server's lists."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence


@dataclass(frozen=True, slots=True)
class ServerListing:
    """A server's unvalidated lists.

    Attributes:
        revision: The negotiated protocol revision.
        info: The server's `serverInfo`, with `instructions`.
        capabilities: The server's capabilities.
        sections: The entries of each list.
        notes: Notes on failed requests.
    """

    revision: str
    info: Mapping[str, Any]
    capabilities: Mapping[str, Any]
    sections: Mapping[str, Sequence[Any]]
    notes: tuple[str, ...] = ()
