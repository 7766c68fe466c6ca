"""One process at a time: a process that writes into a folder makes others wait."""

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
    """Wait until no other process holds a folder, and hold it if the system supports that.

    It does not write below the folder. The lock is on the folder itself, or the nearest existing folder above it; on
    Windows, where folders cannot be locked, it is on a file in the user's folder for temporary files.
    """
    if sys.platform == "win32":
        with file_lock(folder):
            yield
        return
    import fcntl

    there = next(path for path in (folder, *folder.parents) if path.is_dir())
    with ExitStack() as held:
        with suppress(OSError):  # some network disks do not support locks
            handle = os.open(there, os.O_RDONLY)
            held.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX)
            held.callback(fcntl.flock, handle, fcntl.LOCK_UN)  # a helper may still have the handle
        yield


@contextmanager
def file_lock(folder: Path) -> Iterator[None]:
    """Hold a folder by a file elsewhere, whose name is a digest of the folder's path."""
    from filelock import FileLock

    # Windows ignores case in paths, and allows halves of surrogate pairs in them, which UTF-8 does not encode.
    name = hashlib.sha256(os.path.normcase(folder.resolve()).encode("utf-8", "surrogatepass")).hexdigest()[:32]
    with FileLock(Path(tempfile.gettempdir(), f"stubwright-{name}.lock")):
        yield
