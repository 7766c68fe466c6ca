"""Stores files that no other user can read in the user's configuration folder."""

from __future__ import annotations

import os
import stat
from pathlib import Path
from typing import Final

import platformdirs

from stubwright.project.files import disk, inside
from stubwright.project.files.user_cache import is_owned

VARIABLE: Final = "STUBWRIGHT_CONFIG_DIR"
"""The environment variable that overrides the platform's configuration folder."""

_OTHERS: Final = 0o077


class ExposedError(OSError):
    """Other users can read or replace a file or folder, which the message names."""


def locate(folder: str, name: str) -> Path:
    """Return the path for a file, which may not exist."""
    configured = os.environ.get(VARIABLE)
    base = Path(configured) if configured else platformdirs.user_config_path("stubwright", appauthor=False)
    return base / folder / name


def read(path: Path) -> bytes | None:
    """Return the contents of a file; None if it does not exist.

    Raises:
        ExposedError: Other users can read or replace the file.
        OSError: The file cannot be read.
    """
    if not os.path.lexists(path):
        return None
    if not is_owned(path.parent, stat.S_ISDIR, others=_OTHERS) or not is_owned(path, stat.S_ISREG, others=_OTHERS):
        raise ExposedError(f"other users can read or replace `{path}`; delete it")
    return inside.read_regular(path)


def write(path: Path, data: bytes) -> None:
    """Write a file with mode 600 and create its folder with mode 700.

    Raises:
        ExposedError: Other users can read or change the folder.
        OSError: The file cannot be written.
    """
    path.parent.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
    path.parent.mkdir(exist_ok=True, mode=0o700)
    if not is_owned(path.parent, stat.S_ISDIR, others=_OTHERS):
        raise ExposedError(f"other users can read or change `{path.parent}`; run chmod 700 on it")
    disk.write(path, data, mode=0o600)


def delete(path: Path) -> None:
    """Delete a file if it exists. Raises OSError if it cannot be deleted."""
    path.unlink(missing_ok=True)
