"""A non-blocking stream, which a thread writes to standard error.

While a mebibyte is pending, more text is dropped; a line reports how many lines were lost.
"""

from __future__ import annotations

import io
import os
import select
import sys
import threading
from collections import deque
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TextIO

if TYPE_CHECKING:
    from typing_extensions import Buffer

_MOST_WAITING: Final = 1 << 20
"""The maximum number of pending bytes, in addition to a pipe's buffer (usually 64 KiB)."""


class BackgroundStream:
    """A stream for `logging.StreamHandler` whose `write` never blocks."""

    def __init__(self, descriptor: int, encoding: str = "utf-8", most: int = _MOST_WAITING) -> None:
        """Create a stream. Its thread starts with the first write.

        Args:
            descriptor: The file descriptor, which remains open.
            encoding: The text encoding; characters it cannot encode are escaped.
            most: The maximum size of pending text, in bytes.
        """
        self._descriptor = descriptor
        self._encoding = encoding
        self._most = most
        self._begin()
        if sys.platform != "win32":
            os.register_at_fork(after_in_child=self._begin)  # the child does not inherit the thread

    def _begin(self) -> None:
        self._changed = threading.Condition()
        self._waiting: deque[bytes] = deque()
        self._size = 0
        self._lost = 0
        self._thread: threading.Thread | None = None
        self._error: OSError | None = None

    def write(self, text: str) -> int:
        """Queue text, or drop it if the queue is full. Return the text's length in both cases."""
        self.write_bytes(text.replace("\n", os.linesep).encode(self._encoding, "backslashreplace"))
        return len(text)

    def write_bytes(self, data: bytes) -> None:
        """Queue encoded text, or drop it if the queue is full."""
        with self._changed:
            if self._error is not None or self._size + len(data) > self._most:
                self._lost += data.count(b"\n")
                return
            if self._lost:
                self._add(self._report_lost())
            self._add(data)
            if self._thread is None:
                self._thread = threading.Thread(target=self._write_all, name="standard error", daemon=True)
                self._thread.start()
            self._changed.notify_all()

    def open_text(self) -> TextIO:
        """Return a text file for `print` that writes to this stream."""
        return io.TextIOWrapper(
            io.BufferedWriter(_RawStream(self, self._descriptor)),
            self._encoding,
            "backslashreplace",
            line_buffering=True,
        )

    def flush(self) -> None:
        """Do nothing, because `logging` calls this after each record."""

    def drain(self, seconds: float) -> bool:
        """Wait until all text is written or the time has elapsed. Return whether all text was written."""
        with self._changed:
            return self._changed.wait_for(lambda: not self._size or self._error is not None, seconds)

    def _add(self, data: bytes) -> None:
        self._waiting.append(data)
        self._size += len(data)

    def _report_lost(self) -> bytes:
        lost, self._lost = self._lost, 0
        noun = "line" if lost == 1 else "lines"
        return f"… {lost:,} log {noun} lost: standard error was not read{os.linesep}".encode(
            self._encoding, "backslashreplace"
        )

    def _write_all(self) -> None:
        while True:
            with self._changed:
                if not self._waiting and self._lost:
                    self._add(self._report_lost())
                self._changed.wait_for(lambda: self._waiting)
                data = self._waiting.popleft()
            try:
                self._write(data)
            except OSError as error:  # the reader has closed the pipe
                with self._changed:
                    self._error = error
                    self._changed.notify_all()
                return
            with self._changed:
                self._size -= len(data)
                self._changed.notify_all()

    def _write(self, data: bytes) -> None:
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:  # another process may make it non-blocking
                select.select((), (self._descriptor,), ())


class _RawStream(io.RawIOBase):
    """A raw `io` file that writes to a `BackgroundStream`."""

    def __init__(self, stream: BackgroundStream, descriptor: int) -> None:
        self._stream = stream
        self._descriptor = descriptor

    def fileno(self) -> int:
        return self._descriptor

    def writable(self) -> bool:
        return True

    def write(self, data: Buffer) -> int:
        copy = bytes(data)
        self._stream.write_bytes(copy)
        return len(copy)


@lru_cache(maxsize=1)
def _open(descriptor: int, encoding: str) -> BackgroundStream:
    # Logs and `print` share the stream, so that their lines remain in order.
    return BackgroundStream(descriptor, encoding)


def open_background() -> TextIO | BackgroundStream:
    """Return a non-blocking stream to standard error, or `sys.stderr` itself if it has no file descriptor."""
    try:
        descriptor = sys.stderr.fileno()
    except (AttributeError, OSError, ValueError):  # missing, or replaced
        return sys.stderr
    return _open(descriptor, sys.stderr.encoding)
