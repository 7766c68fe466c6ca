"""Writes audit records to a file, as one line of JSON each.

Records that cannot be written stay in memory and are retried. The log reports the first failure and the recovery. Lines
are ASCII, so that no string from a caller can break them.
"""

from __future__ import annotations

import json
import os
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from ...observability.logs import log

if TYPE_CHECKING:
    from os import PathLike

    from .audit import CallRecord


_STANDARD_ERROR: Final = 2

_JSON: Final = json.JSONEncoder(separators=(",", ":"))


class AuditFile:
    """A sink that appends records to a file, and retries failed writes."""

    def __init__(self, path: str | PathLike[str]) -> None:
        """Open the file. A new file is readable and writable only by its owner.

        Raises:
            OSError: The file cannot be opened.
        """
        self._path = None if path == "-" else Path(path).absolute()
        self._waiting = b""
        self._written = 0
        self._lost = 0
        self._is_failing = False
        self._descriptor = _STANDARD_ERROR if self._path is None else _open(self._path)

    def write(self, records: Sequence[CallRecord], lost: int) -> bool:
        """Append records to the file, and return whether everything was written."""
        self._waiting += b"".join(map(format_line, records))
        if lost:
            self._lost += lost
            self._waiting += _encode({"time": _format_time(datetime.now(UTC)), "lost": lost})
        try:
            self._write(self._waiting)
        except OSError as error:
            self._report(error)
            return False
        if self._is_failing or self._lost:
            self._is_failing = False
            where = self._path or "standard error"
            log().warning("writing audit records to %s again; %d were lost", where, self._lost)
        self._waiting, self._written, self._lost = b"", 0, 0
        return True

    def close(self) -> None:
        """Do nothing, because `write` does not buffer."""

    def _write(self, data: bytes) -> None:
        self._follow(data)
        while self._written < len(data):
            self._written += os.write(self._descriptor, data[self._written :])

    def _follow(self, data: bytes) -> None:
        """If the file was rotated, open the new file, and rewrite a line that was only partly written."""
        if self._path is None:
            return
        try:
            there = self._path.stat()
        except FileNotFoundError:
            there = None
        if there is not None and self._descriptor >= 0:
            here = os.fstat(self._descriptor)
            if (here.st_dev, here.st_ino) == (there.st_dev, there.st_ino):
                return
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
        self._descriptor = _open(self._path)
        self._written = data.rfind(b"\n", 0, self._written) + 1

    def _report(self, error: OSError) -> None:
        if not self._is_failing:
            self._is_failing = True
            reason = os.strerror(error.errno) if error.errno is not None else str(error)
            where = self._path or "standard error"
            log().error(
                "cannot write audit records to %s: %s; keeping them in memory and retrying",
                where,
                reason,
            )


def format_line(record: CallRecord) -> bytes:
    """Return a record as a line of JSON."""
    fields: dict[str, Any] = {name: getattr(record, name) for name in record.__slots__}
    fields["time"] = _format_time(record.time)
    if record.arguments is None:
        del fields["arguments"]
    return _encode(fields)


def _encode(fields: dict[str, Any]) -> bytes:
    return _JSON.encode(fields).encode() + b"\n"


def _format_time(when: datetime) -> str:
    return when.isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _open(path: Path) -> int:
    flags = os.O_WRONLY | os.O_APPEND | os.O_CREAT
    for name in ("O_NONBLOCK", "O_CLOEXEC", "O_BINARY"):  # without O_BINARY, Windows ends each record with CRLF
        flags |= getattr(os, name, 0)
    return os.open(path, flags, 0o600)
