"""Reads the lock, and recovers from killed runs.

A run stages its lock first and moves it into place last. A staged lock that was never moved lists a killed run's files,
so that the next run can distinguish them from edits (`recover`).
"""

from __future__ import annotations

import errno
import os
import re
from contextlib import AbstractContextManager
from pathlib import Path

from stubwright import __version__
from stubwright.incremental import digests
from stubwright.project.files import inside, lock, locking
from stubwright.project.files.disk import retry, stage
from stubwright.project.files.layout import find_above
from stubwright.project.files.tree import list_folders_above, remove_empty


def read_lock(output: Path) -> lock.Lock:
    """Return an output folder's lock, including the planned files of killed runs; return an empty lock if none exists.

    Raises:
        OSError: The lock exists but cannot be read.
        lock.LockError: The file is not a valid lock.
    """
    path = output / lock.NAME
    if output.is_file():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    try:
        data = inside.read_regular(path)
    except inside.NotWritableError as error:
        raise lock.LockError(f"it is a {error.what}, not a file") from error
    if data is None and inside.find_kind(path) == "folder":
        raise lock.LockError("it is a folder, not a file")
    known = lock.Lock(__version__) if data is None else _load_lock(data)
    return lock.unite(known, [pending for pending in _journals(output).values() if pending is not None])


def _load_lock(data: bytes) -> lock.Lock:
    try:
        return lock.load(digests.with_lf(data).decode())
    except UnicodeDecodeError as error:
        raise lock.LockError("it is not UTF-8") from error


def was_interrupted(output: Path) -> bool:
    """Return whether the last run that wrote to an output folder was killed. Raises OSError."""
    return any(pending is not None for pending in _journals(output).values())


_JOURNAL = re.compile(rf"\.{re.escape(lock.NAME)}\.0\.[0-9a-f]{{16}}\.tmp")
"""The name of a staged lock. Like all staged file names, it contains the run's ID."""


def _journals(output: Path) -> dict[str, lock.Lock | None]:
    """Return the staged locks that were never moved into place, keyed by run, with None for an incomplete lock."""
    try:
        paths = sorted(path for path in output.iterdir() if _JOURNAL.fullmatch(path.name))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    journals: dict[str, lock.Lock | None] = {}
    for path in paths:
        data = inside.read_regular(path) if inside.find_kind(path) == "file" else None
        if data is not None:
            run = path.name.split(".")[-2]
            try:
                journals[run] = _load_lock(data)
            except lock.LockError:
                # Runs stage the lock first, so a run killed while writing it has staged no other files.
                journals[run] = None
    return journals


def recover(output: Path) -> None:
    """Remove the staged files of killed runs and record in the lock the files that they may have written.

    Every step can be repeated, so recovery itself can be killed safely.

    Raises:
        OSError: A file cannot be read or written.
        lock.LockError: The lock is invalid.
    """
    journals = _journals(output)
    if not journals:
        return
    known = read_lock(output)
    if was_interrupted(output):
        # Update the lock before removing the journals, so that no data is lost if this run is killed in between.
        staged = stage(output / lock.NAME, lock.dump(known).encode(), 0, os.urandom(8).hex(), safe=True)
        retry(lambda: staged.replace(output / lock.NAME))
    ours = {folder for entry in known.manifests.values() for folder in list_folders_above(entry.files)}
    ends = tuple(f".{run}.tmp" for run in journals)
    # Bottom up, so that subfolders are removed before their parents.
    for folder, _, names in os.walk(output, topdown=False):
        for name in names:
            if name.endswith(ends) and not _JOURNAL.fullmatch(name):
                Path(folder, name).unlink(missing_ok=True)
        if Path(folder).relative_to(output).as_posix() in ours:
            remove_empty(Path(folder))
    # Remove the journals last, because they identify the runs whose files must be removed.
    for run in journals:
        (output / f".{lock.NAME}.0.{run}.tmp").unlink(missing_ok=True)


def lock_output(output: Path) -> AbstractContextManager[None]:
    """Return a context that excludes other runs from an output folder."""
    return locking.exclusive_lock(find_above(output))
