"""Rejects requests with ambiguous framing (RFC 9112, 6.3 and 11.2)."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Iterable

_LENGTH: Final = b"content-length"
_CODING: Final = b"transfer-encoding"
_END: Final = b"\r\n\r\n"

_FAULTY_BREAK: Final = re.compile(rb"(?<!\r)\n|\r(?!\n|\Z)|\n[ \t]")
"""A bare LF, a bare CR, or a folded line (RFC 9112, 2.2 and 5.2)."""

_SIZE: Final = re.compile(rb"([0-9A-Fa-f]{1,16})(?:;[^\r\n]*)?\r\n")
"""The line before a chunk (RFC 9112, 7.1)."""

_TRAILER: Final = re.compile(rb"(?![ \t])[^\r\n]*\r\n")


class UnclearFramingError(ValueError):
    """The end of a request, and thus the start of the next one, is ambiguous."""


def check_framing(headers: Iterable[tuple[bytes, bytes]]) -> None:
    """Check that at most one header frames the body and that its value is valid (RFC 9112, 6.1 and 6.3).

    Args:
        headers: All headers, including repeated ones, with lower-case names.

    Raises:
        UnclearFramingError: Several headers frame the body, the transfer coding is not `chunked`, or the length is not
            a number.
    """
    framings = [header for header in headers if header[0] in (_LENGTH, _CODING)]
    if len(framings) > 1:
        raise UnclearFramingError(f"{len(framings)} headers that frame the body")
    for name, value in framings:
        if name == _CODING and value.lower() != b"chunked":
            raise UnclearFramingError("a transfer coding other than chunked")
        if name == _LENGTH and not value.isdigit():
            raise UnclearFramingError("a length that is not a number")


def check_head(data: bytes) -> None:
    """Check a complete or partial head before a lenient parser reads it.

    Args:
        data: The request's bytes so far; the body is not checked.

    Raises:
        UnclearFramingError: A line in the head is folded or does not end in CRLF, or the framing headers are invalid.
    """
    head, end, _ = data.partition(_END)
    if _FAULTY_BREAK.search(head + end):
        raise UnclearFramingError("a line that is folded or does not end in CRLF")
    if end:
        lines = (line.partition(b":") for line in head.split(b"\r\n")[1:])
        check_framing((name.lower(), value.strip(b" \t")) for name, _, value in lines)


class ChunkedBody:
    """A chunked body that is checked line by line before a lenient parser reads it (RFC 9112, 7.1)."""

    def __init__(self) -> None:
        self._line = b""
        self._skipped = 0
        """Bytes to skip: the rest of a chunk and its CRLF, which the parser checks."""
        self._is_in_trailer = False
        self._is_complete = False

    def check(self, data: bytes) -> None:
        """Check the next bytes; bytes after the body are ignored.

        Raises:
            UnclearFramingError: A line does not end in CRLF, is folded, or has no valid size.
        """
        place = 0
        while place < len(data) and not self._is_complete:
            if self._skipped:
                step = min(self._skipped, len(data) - place)
                self._skipped -= step
                place += step
                continue
            end = data.find(b"\n", place) + 1 or len(data)
            self._line += data[place:end]
            place = end
            if self._line.endswith(b"\n"):
                self._end_line()

    def _end_line(self) -> None:
        line, self._line = self._line, b""
        match = (_TRAILER if self._is_in_trailer else _SIZE).fullmatch(line)
        if match is None:
            raise UnclearFramingError("an invalid line in a chunked body")
        if self._is_in_trailer:
            self._is_complete = line == b"\r\n"
        elif size := int(match[1], 16):
            self._skipped = size + 2
        else:
            self._is_in_trailer = True
