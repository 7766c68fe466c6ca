"""Makes untrusted text safe to print, log, or use in an exception."""

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
"""C0 except tab and line feed, DEL and C1 (ECMA-48: escape sequences start with them); zero-width and bidirectional
characters (Unicode categories Cf, Zl and Zp), except joiners in scripts that need them; noncharacters and lone
surrogates."""
_BREAKS: Final = str.maketrans("\t\n\r", "   ")


def replace_controls(text: str) -> str:
    """Replace each control or invisible character with a marker, except line breaks and tabs."""
    return HIDDEN.sub(MARK, text.replace("\r\n", "\n"))


def to_one_line(text: str) -> str:
    """Also replace line breaks and tabs, so that quoted text cannot start a line. The length does not change."""
    return replace_controls(text.translate(_BREAKS))


LONGEST: Final = 200
"""The maximum length of an untrusted name."""


def shorten(text: str) -> str:
    """Truncate an untrusted name to one short line."""
    text = text[:LONGEST]
    return text if text.isascii() and text.isprintable() else to_one_line(text)
