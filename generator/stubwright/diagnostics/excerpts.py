"""Excerpts: messages quote at most one line of user input."""

from __future__ import annotations

import re
from typing import Final

LINE: Final = 120
"""The maximum length of a quotation of user input in a message."""

CODE: Final = 400
"""The most characters of an excerpt that a user may copy."""

_WHOLE: Final = 1000
"""Characters of a whole text."""

_QUOTED: Final = re.compile(r"(?<=`)[^`]+(?=`)")


def truncate(text: str, most: int) -> str:
    """Truncate quotations of more than `most` characters, and the whole text, in the middle."""
    if len(text) <= most:
        return text
    return _cut(_QUOTED.sub(lambda match: _cut(match[0], most), text), _WHOLE)


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    tail = most // 4
    return f"{text[: most - tail - 1]}…{text[-tail:]}"
