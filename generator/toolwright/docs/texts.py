"""Texts of a manifest as people can read them. Takes and gives text."""

from __future__ import annotations

import re
from typing import Final

_UNSEEN: Final = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb]")
"""Control characters, and those that turn the direction of text or take no room."""


def visible(text: str) -> str:
    """`text` with what could not be seen, or would hide the rest, by its number: `\\u202e`."""
    return _UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", text.replace("\r\n", "\n"))
