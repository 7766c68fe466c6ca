"""An incremental parser for `text/event-stream` (WHATWG HTML, 9.2) with size limits."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from .bounds import Bound, Bounds

# Atomic, because otherwise a single `\r\n` would match as two line ends.
_BLANK: Final = re.compile(rb"(?>\r\n|\n|\r){2}")
"""The two line ends that end an event."""

_END: Final = re.compile(rb"\r\n|\n|\r")
_DIGITS: Final = re.compile(rb"[0-9]{1,9}\Z")


@dataclass(frozen=True, slots=True)
class Event:
    """A server-sent event.

    Attributes:
        data: The data, with lines joined by line feeds.
        id: The event ID, or `None`.
        retry: The reconnection time in milliseconds, or `None`.
        is_message: Whether the event type is `message`.
    """

    data: bytes
    id: str | None
    retry: int | None
    is_message: bool


class EventParser:
    """An incremental parser for one event stream."""

    def __init__(self, bounds: Bounds, bound: Bound) -> None:
        """Prepare a parser that applies the connection's limits to the stream and `bound` to each event."""
        self._bounds = bounds
        self._bound = bound
        self._begun = bytearray()
        self._has_begun = False
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def feed(self, piece: bytes) -> list[Event]:
        """Return the events that a chunk of the stream completes.

        Raises:
            TooLargeError: The event or the whole stream is too large.
            UnicodeDecodeError: The chunk is not UTF-8.
        """
        self._bounds.add(len(piece))
        self._decoder.decode(piece)
        begun = self._begun
        begun += piece
        if not self._has_begun:
            if len(begun) < len(codecs.BOM_UTF8) and codecs.BOM_UTF8.startswith(begun):
                return []
            # Exclude a leading byte order mark from the first field.
            self._has_begun = True
            if begun.startswith(codecs.BOM_UTF8):
                del begun[: len(codecs.BOM_UTF8)]
        events: list[Event] = []
        end = 0
        # Earlier chunks contain at most one of the two line ends, and its last byte also matches as a line end.
        for blank in _BLANK.finditer(begun, max(0, len(begun) - len(piece) - 1)):
            self._bounds.check(blank.start() - end, self._bound)
            events.append(_parse(bytes(begun[end : blank.end()])))
            end = blank.end()
        if end:
            self._begun = begun[end:]
        self._bounds.check(len(self._begun), self._bound)
        return events

    def finish(self) -> Event | None:
        """Return the incomplete event at the end of a stream, or `None`."""
        rest = bytes(self._begun)
        self._begun = bytearray()
        return _parse(rest) if rest.strip() else None


def _parse(text: bytes) -> Event:
    data: list[bytes] = []
    name, retry, is_message = None, None, True
    for line in _END.split(text):
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if field == b"data":
            data.append(value)
        elif field == b"id":
            name = value.decode(errors="replace")
        elif field == b"event":
            is_message = value == b"message"
        elif field == b"retry" and _DIGITS.match(value):
            retry = int(value)
    return Event(b"\n".join(data), name, retry, is_message)
