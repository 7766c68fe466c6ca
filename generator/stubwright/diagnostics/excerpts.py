"""Truncates the quotations of user input in messages."""

from __future__ import annotations

import re
from typing import Final

LINE: Final = 120
"""The maximum length of a quotation of user input in a message."""

CODE: Final = 400
"""The maximum length of a quotation in `help`, which a user may copy."""

_WHOLE: Final = 1000
"""The maximum length of a message."""

_QUOTED: Final = re.compile(r"(?<=`)[^`]+(?=`)")


def truncate(text: str, most: int) -> str:
    """Truncate quotations longer than `most` characters, and then the whole text, in the middle."""
    if len(text) <= most:
        return text
    return _cut(_QUOTED.sub(lambda match: _cut(match[0], most), text), _WHOLE)


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    tail = most // 4
    return f"{text[: most - tail - 1]}…{text[-tail:]}"
