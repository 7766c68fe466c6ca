"""Checks that reads, writes and deletions below a folder stay in that folder.

The folder itself can be a link, but links below it are not followed. `paths` checks paths without accessing the disk.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

from stubwright import paths

if TYPE_CHECKING:
    from pathlib import Path

Kind: TypeAlias = Literal["nothing", "file", "folder", "link", "pipe", "socket", "device"]

_KINDS: Final[tuple[tuple[int, Kind], ...]] = (
    (stat.S_IFREG, "file"),
    (stat.S_IFDIR, "folder"),
    (stat.S_IFLNK, "link"),
    (stat.S_IFIFO, "pipe"),
    (stat.S_IFSOCK, "socket"),
)


class NotWritableError(OSError):
    """The path is a link, a pipe, a socket or a device.

    `what` is its kind and `filename` its path.
    """

    def __init__(self, what: Kind, path: str) -> None:
        super().__init__(
            errno.ELOOP if what == "link" else errno.EINVAL, f"it is a {what}, so it was left unchanged", path
        )
        self.what = what


class ContainedFolder:
    """A folder whose contents are accessed without following links. Each folder below it is resolved once."""

    def __init__(self, folder: str | Path) -> None:
        self.folder = os.fspath(folder)
        self._base = os.path.realpath(self.folder)
        self._real: dict[str, str] = {}

    def holds(self, path: str) -> bool:
        """Return whether a path, which is relative to the working folder, is in this folder after resolving links."""
        if paths.is_impossible(path):
            return False
        real = self._resolve_path(path)
        return real == self._base or real.startswith(self._base.rstrip(os.sep) + os.sep)

    def read(self, path: str) -> bytes | None:
        """Return the bytes of a file; None if it does not exist or is a folder.

        Args:
            path: The path relative to the folder, with `/` separators.

        Raises:
            NotWritableError: The path is a link, below a link, or not a regular file.
            OSError: The file cannot be read.
        """
        self._refuse_link_above(path)
        return read_regular(f"{self.folder}/{path}")

    def check(self, path: str) -> None:
        """Raise NotWritableError if `read` would, without reading the file."""
        self._refuse_link_above(path)
        _can_open(f"{self.folder}/{path}")

    def check_folder(self, path: str) -> None:
        """Raise NotWritableError if a link takes a file's folder outside this folder."""
        if not self.holds(os.path.join(self.folder, os.path.dirname(path))):  # noqa: PTH118, PTH120
            raise NotWritableError("link", self._link(path).removeprefix("./"))

    def _refuse_link_above(self, path: str) -> None:
        full = f"{self.folder}/{path}"
        above = posixpath.dirname(path)
        if not _is_same_path(self._resolve_folder(posixpath.dirname(full)), _join_path(self._base, above)):
            raise NotWritableError("link", self._link(path))

    def _resolve_path(self, path: str) -> str:
        folder, name = os.path.split(path)
        if name in ("", ".", "..") or os.path.islink(path):  # noqa: PTH114 - as in `read_regular`
            return os.path.realpath(path)
        return _join_path(self._resolve_folder(folder), name)

    def _resolve_folder(self, folder: str) -> str:
        if folder not in self._real:
            self._real[folder] = os.path.realpath(folder)
        return self._real[folder]

    def _link(self, path: str) -> str:
        steps = path.split("/")
        prefixes = (f"{self.folder}/{'/'.join(steps[: count + 1])}" for count in range(len(steps)))
        return next((prefix for prefix in prefixes if find_kind(prefix) == "link"), f"{self.folder}/{path}")


def find_kind(path: str | Path) -> Kind:
    """Return the kind of file at a path, without following links. Raises OSError if the path cannot be read."""
    try:
        mode = os.lstat(path).st_mode
    except (FileNotFoundError, NotADirectoryError):
        return "nothing"
    return name_kind(mode)


def name_kind(mode: int) -> Kind:
    """Return a file's kind from its mode."""
    return next((name for bits, name in _KINDS if stat.S_IFMT(mode) == bits), "device")


def read_regular(path: str | Path) -> bytes | None:
    """Return the bytes of a file; None if it does not exist or is a folder.

    Raises:
        NotWritableError: The path is another kind of file, which might block or have side effects when opened.
        OSError: The file cannot be read.
    """
    if not _can_open(path):
        return None
    with open(path, "rb") as file:  # noqa: PTH123 - creating a `Path` is as slow as reading a small file
        return file.read()


def _can_open(path: str | Path) -> bool:
    what = find_kind(path)
    if what not in ("nothing", "folder", "file"):
        raise NotWritableError(what, os.fspath(path))
    return what == "file"


def _join_path(folder: str, below: str) -> str:
    return f"{folder.rstrip(os.sep)}{os.sep}{below.replace('/', os.sep)}" if below else folder


def _is_same_path(first: str, second: str) -> bool:
    # On Windows, `realpath` returns the case on disk, which may differ from the caller's.
    return os.path.normcase(first) == os.path.normcase(second)
