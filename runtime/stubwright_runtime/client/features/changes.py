"""Types for changes that servers announce."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal, TypeAlias

MOST: Final = 1024
"""The maximum number of changes queued for one listener."""


@dataclass(frozen=True, slots=True)
class ListChanged:
    """The server's tools, prompts or resources have changed.

    Attributes:
        kind: Which list has changed.
    """

    kind: Literal["tools", "prompts", "resources"]


@dataclass(frozen=True, slots=True)
class ResourceUpdated:
    """The content of a resource has changed.

    Attributes:
        uri: The URI of the resource or of a part of a subscribed resource.
    """

    uri: str


Change: TypeAlias = ListChanged | ResourceUpdated
