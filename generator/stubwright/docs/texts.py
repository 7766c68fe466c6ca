"""Prepares manifest text for display."""

from __future__ import annotations

import itertools
import re
from typing import Final

_UNSEEN: Final = re.compile(
    r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]"
)
"""Control characters, invisible characters, and characters that change the text direction."""

_SEPARATORS: Final = re.compile(r"(?<=[^_\-/.:])[_\-/.:]+(?=[^_\-/.:])")


def escape_invisible(text: str) -> str:
    """Replace invisible and direction-changing characters with escapes such as `\\u202e`."""
    return _UNSEEN.sub(lambda match: f"\\u{ord(match[0]):04x}", text.replace("\r\n", "\n"))


def split_name(name: str) -> list[str]:
    """Split a name after each separator: `get_weather` becomes `get_` and `weather`."""
    readable = escape_invisible(name)
    ends = [0, *(match.end() for match in _SEPARATORS.finditer(readable)), len(readable)]
    return [readable[start:end] for start, end in itertools.pairwise(ends)]
