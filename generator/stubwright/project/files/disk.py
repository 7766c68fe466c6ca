"""Reads the compiler's input and writes single files atomically.

A file is first written next to its target, then moved into place. Devices and pipes are written to directly.
"""

from __future__ import annotations

import errno
import os
import posixpath
import stat
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from stubwright.incremental import digests
from stubwright.project.files import inside

MAX_FILE = 64 * 1024 * 1024


_MOST = 64 * 1024


@dataclass(frozen=True, slots=True)
class Disk:
    """Reads files for `source.load`; paths are relative to the working folder, or absolute.

    `inputs` collects the digests of all reads: files keyed by path, and listings keyed by folder and pattern.
    """

    inputs: dict[str, str] = field(default_factory=dict)
    _files: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    _listings: dict[str, tuple[list[str], str]] = field(default_factory=dict)
    _folders: dict[str, inside.ContainedFolder] = field(default_factory=dict)

    def share_cache(self) -> Disk:
        """Return a reader with no inputs that shares this reader's cached files."""
        return Disk({}, self._files, self._listings)

    def read(self, path: str) -> bytes:
        """Return the file's bytes.

        Raises:
            OSError: The file cannot be read, is larger than 64 MiB, or is a pipe or a device, which might never end.
                Files below `/dev` and `/proc` are allowed, because shells pass them.
        """
        if path not in self._files:
            opener = None if path.startswith(_PASSED) else _open_regular
            with open(path, "rb", opener=opener) as file:
                data = file.read(_MOST)
                if len(data) == _MOST:  # do not allocate `MAX_FILE` bytes for each small file
                    data += file.read(MAX_FILE + 1 - _MOST)
            if len(data) > MAX_FILE:
                raise OSError(f"it is larger than {MAX_FILE // 1024 // 1024} MiB")
            self._files[path] = data, digests.compute_digest(data)
        data, self.inputs[path] = self._files[path]
        return data

    def glob(self, folder: str, pattern: str) -> list[str]:
        """Return matching files below `folder`, sorted, with `/` separators."""
        key = f"{posixpath.normpath(folder)}{LISTING}{pattern}"
        if key not in self._listings:
            base = Path(folder)
            above = "" if base == Path() else f"{base.as_posix().rstrip('/')}/"
            paths = sorted(path.as_posix().removeprefix(above) for path in base.glob(pattern) if path.is_file())
            # File names need not be UTF-8.
            self._listings[key] = paths, digests.compute_digest("\n".join(paths).encode("utf-8", "surrogateescape"))
        paths, self.inputs[f"{folder}{LISTING}{pattern}"] = self._listings[key]
        return [posixpath.normpath(posixpath.join(folder, path)) for path in paths]

    def is_within(self, path: str, folder: str) -> bool:
        """Return whether a path is below `folder` after following links."""
        if folder not in self._folders:
            self._folders[folder] = inside.ContainedFolder(folder or ".")
        return self._folders[folder].holds(path)


def _open_regular(path: str, flags: int) -> int:
    """Open a file without waiting for a pipe's writer. Raises OSError if the path is neither a file nor a folder."""
    handle = os.open(path, flags | _NO_WAITING)
    mode = os.fstat(handle).st_mode
    if stat.S_ISREG(mode) or stat.S_ISDIR(mode):  # `open` rejects folders
        return handle
    os.close(handle)
    raise OSError(f"it is a {inside.name_kind(mode)}, not a file")


_NO_WAITING = getattr(os, "O_NONBLOCK", 0)


def find_module(name: str, folders: Sequence[str]) -> Path | None:
    """Return the file of a module in `folders`, or None."""
    return next((path for path in list_module_files(name, folders) if path.is_file()), None)


def list_module_files(name: str, folders: Sequence[str]) -> list[Path]:
    """Return the possible files for a module, in order of precedence."""
    paths = [Path(folder, *name.split(".")) for folder in folders]
    return [file for path in paths for file in (path.with_suffix(".py"), path / "__init__.py")]


def is_importable(name: str, folders: Sequence[str]) -> bool:
    """Return whether a module's package exists outside the project's folders, without importing it."""
    from importlib.machinery import PathFinder

    own = {str(Path(folder).resolve()) for folder in ("", *folders)}
    paths = [path for path in sys.path if str(Path(path).resolve()) not in own]
    return PathFinder.find_spec(name.partition(".")[0], paths) is not None


LISTING = "//"
"""The separator between a listing's folder and pattern in `Disk.inputs`; no path contains it."""


def read_text(path: Path) -> str | None:
    """Read a file that a command may rewrite, without its byte order mark; return None if it does not exist.

    Raises:
        OSError: The file cannot be read or is not a regular file.
    """
    data = inside.read_regular(path)
    if data is None and inside.find_kind(path) == "folder":
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return None if data is None else data.decode("utf-8-sig", "replace")


def create(path: Path, text: str, encoding: str = "utf-8") -> None:
    """Write a text file atomically. Raises OSError with the file's name."""
    write(path, text.encode(encoding))


def write(path: Path, data: bytes, *, mode: int | None = None) -> None:
    """Write a file atomically; `mode` applies to a new file.

    Raises:
        NotWritableError: The path is relative, and a link in it points outside the working folder.
        OSError: The file cannot be written; the error contains its path.
    """
    staged = None
    refuse_links_out(path)
    try:
        if _is_stream(path):
            with open(path, "ab", buffering=0) as stream:  # noqa: PTH123 - `Path.open` cannot be unbuffered
                stream.write(data)
            return
        with suppress(FileExistsError):  # writing the file gives a better error
            path.parent.mkdir(parents=True, exist_ok=True)
        name_temporary(path, 0, "stubwright").unlink(missing_ok=True)  # from a killed run
        staged = stage(path, data, 0, "stubwright", mode=mode)
        retry(lambda: staged.replace(path))
    except OSError as error:
        if staged is not None:
            staged.unlink(missing_ok=True)
        # The error may contain the staged file's name, which users would not recognize.
        raise OSError(error.errno, error.strerror, str(path)) from error


def refuse_links_out(path: Path) -> None:
    """Raise NotWritableError if a relative path leaves the working folder through a link, which a checkout may contain.

    Absolute paths and paths with `..` are not checked, because with them the user chose another folder.
    """
    if not path.is_absolute() and ".." not in path.parts:
        inside.ContainedFolder(".").check_folder(path.as_posix())


def _is_stream(path: Path) -> bool:
    """Return whether a path is a device, a pipe or an open file. Writing by rename would replace such a path.

    `/dev/stdout` can be a link to a file. Other links are not followed, because a checkout could link to a device.
    """
    try:
        mode = path.lstat().st_mode
    except OSError:
        return False
    if stat.S_ISLNK(mode):
        return any(path.absolute().is_relative_to(folder) for folder in _OPEN_FILES)
    return not (stat.S_ISREG(mode) or stat.S_ISDIR(mode))


_OPEN_FILES = ("/dev", "/proc")
"""Folders with links to a process's open files."""

_PASSED = tuple(f"{folder}/" for folder in _OPEN_FILES)


def retry(change: Callable[[], object]) -> None:
    """Rename or remove a file. On Windows, retry for two seconds while another program has the file open."""
    for pause in _PAUSES:
        try:
            change()
        except PermissionError:
            time.sleep(pause)
        else:
            return
    change()


_PAUSES = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0) if sys.platform == "win32" else ()


def name_temporary(target: Path, number: int, run: str) -> Path:
    """Return the path of a temporary file next to `target`; `number` makes it unique within the run."""
    # Truncated, because most file systems allow only 255 bytes.
    return target.with_name(f".{target.name[:40]}.{number}.{run}.tmp")


def stage(target: Path, data: bytes, number: int, run: str, *, safe: bool = False, mode: int | None = None) -> Path:
    """Write `data` next to `target`, to be renamed later; with `safe`, flush it to disk.

    A replaced file keeps its mode; a new file has `mode`, or by default the mode from the umask.
    """
    mode = target.stat().st_mode & 0o777 if target.is_file() else mode
    beside = name_temporary(target, number, run)
    # With O_EXCL, an existing link with this name is not followed.
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666 if mode is None else mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if safe:
                file.flush()
                os.fsync(file.fileno())
        if mode is not None:  # the umask may have masked bits
            beside.chmod(mode)
    except BaseException:
        beside.unlink(missing_ok=True)
        raise
    return beside


_BINARY = getattr(os, "O_BINARY", 0)
