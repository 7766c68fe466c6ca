"""What the user prefers where a document leaves a choice, and what of it is left out.

It is the same for all operations; which of them become tools is for `naming`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Options:
    """The choices of an import.

    Attributes:
        media_types: Media types that are sent and asked for before others, the best first.
        output_schemas: Whether tools have an `outputSchema`, where the document promises one.
        server: Which of the document's servers is called: its number from 1, its URL or its description.
        longest: How many characters a description may have; None for any number.
    """

    media_types: Sequence[str] = ()
    output_schemas: bool = True
    server: str | None = None
    longest: int | None = None
