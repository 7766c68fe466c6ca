"""Truncates quotations of user input in messages."""

from __future__ import annotations

import re
from typing import Final

LINE: Final = 120
"""Maximum length of quoted user input in a message."""

CODE: Final = 400
"""Maximum length of a quotation in `help`, which users may copy."""

_WHOLE: Final = 1000
"""Maximum length of a message."""

_QUOTED: Final = re.compile(r"(?<=`)[^`]+(?=`)")


def truncate(text: str, most: int) -> str:
    """Truncate long quotations in the middle, each to `most` characters, and then the whole text."""
    if len(text) <= most:
        return text
    return _cut(_QUOTED.sub(lambda match: _cut(match[0], most), text), _WHOLE)


def _cut(text: str, most: int) -> str:
    if len(text) <= most:
        return text
    tail = most // 4
    return f"{text[: most - tail - 1]}…{text[-tail:]}"
