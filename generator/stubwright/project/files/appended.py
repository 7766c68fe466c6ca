"""A file to which whole lines are appended, at once and for its owner alone.

Takes lines; several processes may append to the same file. A line that cannot be written whole is taken back.
"""

from __future__ import annotations

import os
from pathlib import Path


class AppendedFile:
    """The file."""

    def __init__(self, path: Path) -> None:
        """Open it; a new one may be read and written by its owner alone. Raises OSError."""
        flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
        for name in ("O_CLOEXEC", "O_BINARY"):  # without the second one, Windows writes CRLF
            flags |= getattr(os, name, 0)
        self._descriptor = os.open(path, flags, 0o600)

    def append(self, line: bytes) -> None:
        """Write a line with its end. Raises OSError, and then the file ends with the line before."""
        written = 0
        try:
            while written < len(line):
                written += os.write(self._descriptor, line[written:])
        except OSError:
            if written:
                os.ftruncate(self._descriptor, os.fstat(self._descriptor).st_size - written)
            raise

    def close(self) -> None:
        """Close the file."""
        os.close(self._descriptor)
