"""One process at a time: whoever writes into a folder keeps others waiting that want to."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path


@contextmanager
def alone(folder: Path) -> Iterator[None]:
    """Wait until no other process holds a folder, and hold it; where the system can do that.

    Nothing is written: the lock is on the folder itself, or the nearest above it that is there.
    """
    if sys.platform == "win32":
        yield
        return
    import fcntl

    there = next(one for one in (folder, *folder.parents) if one.is_dir())
    with ExitStack() as held:
        with suppress(OSError):  # some disks of other machines know no locks
            handle = os.open(there, os.O_RDONLY)
            held.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX)
            held.callback(fcntl.flock, handle, fcntl.LOCK_UN)  # a helper may still have the handle
        yield
