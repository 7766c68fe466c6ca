"""Locks a folder for one process."""

from __future__ import annotations

import hashlib
import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path


@contextmanager
def exclusive_lock(folder: Path) -> Iterator[None]:
    """Wait for other processes to unlock a folder and lock it if the file system supports this.

    The lock is on the folder itself, or on its nearest existing parent. On Windows, where folders cannot be locked, it
    is on a file in the user's temporary folder. No file is written below the folder.
    """
    if sys.platform == "win32":
        with file_lock(folder):
            yield
        return
    import fcntl

    existing = next(path for path in (folder, *folder.parents) if path.is_dir())
    with ExitStack() as held:
        with suppress(OSError):  # some network disks do not support locks
            handle = os.open(existing, os.O_RDONLY)
            held.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX)
            held.callback(fcntl.flock, handle, fcntl.LOCK_UN)  # a subprocess may still hold the handle
        yield


@contextmanager
def file_lock(folder: Path) -> Iterator[None]:
    """Lock a folder with a temporary file named by a digest of the folder's path."""
    from filelock import FileLock

    # Windows ignores case in paths and allows lone surrogates, which UTF-8 cannot encode.
    name = hashlib.sha256(os.path.normcase(folder.resolve()).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    with FileLock(Path(tempfile.gettempdir(), f"stubwright-{name}.lock")):
        yield
