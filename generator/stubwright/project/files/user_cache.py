"""Stores bytes by name in the user's cache folder, and never reads other users' files.

Each file starts with a MAC of its name and content, with a key from a file that only its owner can read. A missing,
corrupt or altered file, or one owned by another user, counts as absent. An unusable folder is ignored.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import stat
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import platformdirs

from stubwright.project.files import disk, inside

VARIABLE = "STUBWRIGHT_CACHE_DIR"
"""The environment variable that overrides the platform's cache folder."""

_MOST_BYTES = 256 * 1024 * 1024
_MOST_FILES = 1000

_KEY = "key"
_KEY_BYTES = 32
_MAC_BYTES = hashlib.sha256().digest_size
_ENTRY = re.compile(r"[0-9a-f]{64}")
_STAGED = re.compile(r"\..+\.tmp")
_ABANDONED = 3600
"""The age in seconds at which a staged file counts as left by a killed run."""


def locate() -> Path:
    """Return the cache folder, which may be unusable."""
    configured = os.environ.get(VARIABLE)
    return Path(configured) if configured else platformdirs.user_cache_path("stubwright", appauthor=False)


def name(output: Path, manifest: str, what: str) -> str:
    """Return the cache name for a manifest, unique to each checkout and output folder."""
    return json.dumps([str(output.resolve()), manifest, what])


def read(name: str) -> bytes | None:
    """Return the bytes stored under a name; None if this user has not stored any."""
    with suppress(OSError):
        if (key := _read_key(locate())) is None:
            return None
        path = locate() / _file(name)
        data = inside.read_regular(path)
        if data is not None and hmac.compare_digest(data[:_MAC_BYTES], _mac(key, name, data[_MAC_BYTES:])):
            os.utime(path)  # `_prune` removes the least recently read files
            return data[_MAC_BYTES:]
    return None


def write(name: str, data: bytes) -> None:
    """Store bytes under a name and evict the least recently read files if the cache is too large."""
    with suppress(OSError):
        at = locate()
        if (key := _read_key(at) or _new_key(at)) is None:
            return
        _put(at / _file(name), _mac(key, name, data) + data)
        _prune(at)


def _file(name: str) -> str:
    return hashlib.sha256(name.encode()).hexdigest()


def _mac(key: bytes, name: str, data: bytes) -> bytes:
    # Includes the name, so that an entry copied to another name is rejected.
    return hmac.digest(key, _file(name).encode() + data, "sha256")


def _read_key(at: Path) -> bytes | None:
    if not is_owned(at, stat.S_ISDIR, others=0o022) or not is_owned(at / _KEY, stat.S_ISREG, others=0o077):
        return None
    key = (at / _KEY).read_bytes()
    return key if len(key) == _KEY_BYTES else None


def _new_key(at: Path) -> bytes | None:
    """Create the folder and a key unless another process does so first. Return None if the folder is unusable."""
    at.parent.mkdir(parents=True, exist_ok=True)
    with suppress(FileExistsError):
        at.mkdir(0o700)
    if not is_owned(at, stat.S_ISDIR, others=0o022):
        return None
    staged = _stage(at, os.urandom(_KEY_BYTES))
    try:
        with suppress(FileExistsError):
            (at / _KEY).hardlink_to(staged)  # unlike a rename, this does not replace the key of another process
        if (key := _read_key(at)) is None:  # the key is corrupt, or readable by others
            (at / _KEY).unlink(missing_ok=True)
            (at / _KEY).hardlink_to(staged)
            key = _read_key(at)
    finally:
        staged.unlink()
    return key


def is_owned(path: Path, is_kind: Callable[[int], bool], *, others: int) -> bool:
    """Return whether a path has this kind, belongs to this user, and lacks the mode bits `others`."""
    try:
        status = path.lstat()
    except FileNotFoundError:
        return False
    if not is_kind(status.st_mode):
        return False
    # On Windows, the mode does not describe access by other users.
    return os.name == "nt" or (status.st_uid == os.geteuid() and not status.st_mode & others)


def _put(path: Path, data: bytes) -> None:
    staged = _stage(path.parent, data)
    try:
        staged.replace(path)
    except OSError:
        staged.unlink(missing_ok=True)
        raise


def _stage(at: Path, data: bytes) -> Path:
    return disk.stage(at / "staged", data, 0, os.urandom(8).hex(), mode=0o600)


def _prune(at: Path) -> None:
    """Remove the least recently read files if the cache is too large. Also remove files staged by killed runs."""
    left, files = _MOST_BYTES, 0
    for entry, status in sorted(_entries(at), key=lambda each: each[1].st_mtime, reverse=True):
        left, files = left - status.st_size, files + 1
        if left < 0 or files > _MOST_FILES:
            with suppress(OSError):
                entry.unlink()


def _entries(at: Path) -> Iterator[tuple[Path, os.stat_result]]:
    for path in at.iterdir():
        with suppress(OSError):
            status = path.lstat()
            if _ENTRY.fullmatch(path.name):
                yield path, status
            elif _STAGED.fullmatch(path.name) and time.time() - status.st_mtime > _ABANDONED:
                path.unlink()
