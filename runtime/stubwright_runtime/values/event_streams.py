"""An incremental parser for the data in a `text/event-stream` (WHATWG HTML, 9.2.6)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterator

_LINE: Final = re.compile(rb"\r\n|\n|\r(?!$)")
_MARK: Final = b"\xef\xbb\xbf"
"""The optional byte order mark."""


class EventReader:
    """Parses an event stream chunk by chunk."""

    def __init__(self) -> None:
        """Create a parser for a new stream."""
        self._rest = [b""]
        self._data: list[bytes] = []
        self._has_begun = False

    def feed(self, piece: bytes) -> Iterator[bytes]:
        """Yield the data of each event that a chunk completes, with lines joined by line feeds."""
        self._rest.append(piece)
        if b"\n" not in piece and b"\r" not in piece and not self._rest[0].endswith(b"\r"):
            return  # avoids rescanning a long line
        *lines, last = _LINE.split(b"".join(self._rest))
        self._rest = [last]
        for line in lines:
            if not self._has_begun:
                self._has_begun, line = True, line.removeprefix(_MARK)
            field, _, value = line.partition(b":")
            if field == b"data":
                self._data.append(value.removeprefix(b" "))
            elif not line and self._data:
                yield b"\n".join(self._data)
                self._data = []
