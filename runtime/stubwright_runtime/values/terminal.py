"""Makes untrusted text safe to print, log and raise."""

from __future__ import annotations

import re
from typing import Final

MARK: Final = "\N{REPLACEMENT CHARACTER}"
"""The replacement for hidden characters."""

HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\ud800-\udfff\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
    "|(?<![^\x00-\x7f])[\u200c\u200d]"
)
"""C0 except tab and line feed, DEL and C1 (ECMA-48: escape sequences start with them); characters without width or that
change the direction of text (Unicode, categories Cf, Zl and Zp), except joiners within scripts that need them;
noncharacters and lone surrogates."""
_BREAKS: Final = str.maketrans("\t\n\r", "   ")


def replace_controls(text: str) -> str:
    """Replace each control or invisible character by a mark, except line breaks and tabs."""
    return HIDDEN.sub(MARK, text.replace("\r\n", "\n"))


def to_one_line(text: str) -> str:
    """Replace line breaks and tabs, too, so that quoted text cannot start a line; the length does not change."""
    return replace_controls(text.translate(_BREAKS))


LONGEST: Final = 200
"""The maximum characters of a foreign name."""


def shorten(text: str) -> str:
    """Truncate a foreign name, on one line."""
    text = text[:LONGEST]
    return text if text.isascii() and text.isprintable() else to_one_line(text)
