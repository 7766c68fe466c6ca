"""Copies a server process's standard error and stores its first and last lines.

A thread reads the lines, so that the server never blocks on the caller's event loop.
"""

from __future__ import annotations

import codecs
import os
import threading
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from ...values.terminal import to_one_line

if TYPE_CHECKING:
    from typing import TextIO

_FIRST: Final = 5
"""The number of lines stored from the start, which often shows the cause."""

_LAST: Final = 10
"""The number of lines stored from the end."""

_LONGEST: Final = 500
"""The number of characters stored per line."""

_CHUNK: Final = 65536


class StandardError:
    """One process's standard error.

    Attributes:
        writing: The write end of the pipe, which the process inherits; `start` closes it in this process.
    """

    def __init__(self, shown: TextIO | None) -> None:
        """Create the pipe; `shown` receives a copy of all that is read."""
        self._shown = shown
        reading, writing = os.pipe()
        self.writing: TextIO = os.fdopen(writing, "w")
        self._first: list[str] = []
        self._last: deque[str] = deque(maxlen=_LAST)
        self._passed_over = 0
        self._begun = ""
        self._reader = threading.Thread(target=self._read, args=(reading,), daemon=True, name="stderr of a server")

    def start(self) -> None:
        """Start reading after the process has inherited the pipe."""
        # Otherwise the reader never reaches end of file.
        self.writing.close()
        self._reader.start()

    @property
    def has_ended(self) -> bool:
        """True if all output is read."""
        return not self._reader.is_alive()

    def wait(self, seconds: float) -> None:
        """Wait at most `seconds` until all output is read; the process's children can keep the pipe open."""
        if not self.has_ended:
            self._reader.join(seconds)

    def list_lines(self) -> tuple[str, ...]:
        """Return the first and last lines, safe to show on a terminal, with `…` for omitted lines."""
        ends = [self._begun] if self._begun.strip() else []
        lines = [*self._first, *(["…"] if self._passed_over else []), *self._last, *ends]
        return tuple(to_one_line(line)[:_LONGEST].rstrip() for line in lines)

    def _read(self, reading: int) -> None:
        decoder = codecs.getincrementaldecoder("utf-8")("replace")
        with os.fdopen(reading, "rb", buffering=0) as pipe:
            while chunk := pipe.read(_CHUNK):
                text = decoder.decode(chunk)
                self._keep(text)
                if self._shown is not None:
                    with suppress(OSError, ValueError):  # the caller's stream is closed
                        self._shown.write(text)
                        self._shown.flush()

    def _keep(self, text: str) -> None:
        *lines, begun = (self._begun + text).split("\n")
        self._begun = begun[-_LONGEST:]
        for line in lines:
            if not line.strip():
                continue
            if len(self._first) < _FIRST:
                self._first.append(line[:_LONGEST])
            else:
                self._passed_over += len(self._last) == _LAST
                self._last.append(line[:_LONGEST])
