"""Texts of a manifest as people can read them. Takes and gives text."""

from __future__ import annotations

import itertools
import re
from typing import Final

_UNSEEN: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
"""Control characters, and those that turn the direction of text or take no room."""

_SEPARATORS: Final = re.compile(r"(?<=[^_\-/.:])[_\-/.:]+(?=[^_\-/.:])")


def visible(text: str) -> str:
    """`text` with what could not be seen, or would hide the rest, by its number: `\\u202e`."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text.replace("\r\n", "\n"))


def pieces(name: str) -> list[str]:
    """A name as people can read it, cut behind the separators inside it: `get_weather` gives `get_` and `weather`."""
    shown = visible(name)
    ends = [0, *(found.end() for found in _SEPARATORS.finditer(shown)), len(shown)]
    return [shown[start:end] for start, end in itertools.pairwise(ends)]
