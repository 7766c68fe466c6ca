"""An append-only file of lines that is readable only by its owner.

A line that cannot be written completely is removed, unless another process has appended since.
"""

from __future__ import annotations

import os
from pathlib import Path

from stubwright.project.files import disk, inside


class AppendedFile:
    """An open append-only file."""

    def __init__(self, path: Path) -> None:
        """Open the file; a new file is accessible only to its owner.

        Raises:
            NotWritableError: The path is a link, or a relative path that leaves the working folder through a link.
            OSError: The file cannot be opened.
        """
        disk.refuse_links_out(path)
        if inside.find_kind(path) == "link":
            raise inside.NotWritableError("link", str(path))
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        for name in ("O_CLOEXEC", "O_BINARY"):  # without O_BINARY, Windows writes CRLF
            flags |= getattr(os, name, 0)
        self._descriptor = os.open(path, flags, 0o600)

    def append(self, line: bytes) -> None:
        """Write a line. On OSError, remove a partial line if it is still at the end of the file."""
        written = 0
        try:
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
        except OSError:
            end = os.lseek(self._descriptor, 0, os.SEEK_CUR)  # the offset after the last write
            if written and end == os.fstat(self._descriptor).st_size:
                os.ftruncate(self._descriptor, end - written)
            raise

    def shorten(self, size: int) -> None:
        """Truncate the file to `size` bytes. Raises OSError."""
        os.ftruncate(self._descriptor, size)

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)
