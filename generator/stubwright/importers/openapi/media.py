"""Ranks media types for bodies and responses.

The user's preferences come first. Concrete types precede ranges such as `*/*`, JSON precedes other types, and merge
patches (RFC 7396) precede JSON Patch (RFC 6902).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence

JSON: Final = "application/json"
BYTES: Final = "application/octet-stream"
EVENT_STREAM: Final = "text/event-stream"
MERGE_PATCH: Final = "application/merge-patch+json"
JSON_PATCH: Final = "application/json-patch+json"


def strip_parameters(media: str) -> str:
    """Return a media type without its parameters, in lower case (RFC 9110, section 8.3.1)."""
    return media.partition(";")[0].strip().lower()


def is_json(media: str) -> bool:
    """Return whether a media type, or range, is JSON (RFC 6839, section 3.1)."""
    return strip_parameters(media) in (JSON, "text/json") or strip_parameters(media).endswith("+json")


def is_range(media: str) -> bool:
    """Return whether `media` is a media range (RFC 9110, section 12.5.1)."""
    return "*" in strip_parameters(media)


def is_any(media: str) -> bool:
    """Return whether `media` is a media range that includes JSON."""
    return strip_parameters(media) in ("*/*", "application/*")


def make_concrete(media: str, *, is_binary: bool) -> str | None:
    """Return the media type to send for a `content` entry; None for a range without a known type.

    Args:
        media: The entry's key.
        is_binary: True if a range is meant for bytes.
    """
    if not is_range(media):
        return media
    if is_any(media):
        return BYTES if is_binary else JSON
    if is_json(media):
        return JSON
    return "text/plain" if strip_parameters(media) == "text/*" else None


def order(names: Iterable[str], preferred: Sequence[str], rank: Callable[[str], int]) -> list[str]:
    """Return media types, best first.

    Args:
        names: The media types, in the document's order, which breaks ties.
        preferred: The user's preferences, best first.
        rank: Returns a media type's rank, lowest first; types below 0 are omitted.
    """
    wanted = [strip_parameters(media) for media in preferred]

    def get_order(name: str) -> tuple[int, bool, int, int]:
        media = strip_parameters(name)
        preference = wanted.index(media) if media in wanted else len(wanted)
        return preference, is_range(media), rank(name), _rank_json(media)

    return sorted((name for name in names if rank(name) >= 0), key=get_order)


def _rank_json(media: str) -> int:
    return {JSON: 0, MERGE_PATCH: 1, JSON_PATCH: 3}.get(media, 2)
