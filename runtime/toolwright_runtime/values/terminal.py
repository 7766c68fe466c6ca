"""Text of somebody else's, made safe to show: the one function that all that is printed, logged or raised goes through.

Takes any text; gives text in which a terminal obeys nothing and a reader sees all there is. What is data stays whole:
this is for what people read.
"""

from __future__ import annotations

import re
from typing import Final

MARK: Final = "\N{REPLACEMENT CHARACTER}"
"""What stands for each character that is not shown."""

HIDDEN: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\xad\u061c\u180e\u200b\u200e\u200f\u2028-\u202e\u2060-\u206f\ufeff\ufff9-\ufffb"
    "\ufffe\uffff\ud800-\udfff\U00013430-\U0001343f\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e007f]"
    "|(?<![^\x00-\x7f])[\u200c\u200d]"
)
"""C0 but for tab and line feed, DEL and C1 (ECMA-48: escape sequences start with them); what has no width or changes
the direction of text (Unicode, categories Cf, Zl and Zp), but for joiners within scripts that need them; noncharacters
and lone surrogates."""
_BREAKS: Final = str.maketrans("\t\n\r", "   ")


def visible(text: str) -> str:
    """`text` with a mark for each character that a terminal obeys or nobody sees; lines and tabs stay."""
    return HIDDEN.sub(MARK, text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    """The same as one line, as long as it was: what is quoted in a message must not start a line of its own."""
    return visible(text.translate(_BREAKS))
