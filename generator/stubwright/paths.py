"""Paths as they are written: whether one leaves its folder, and whether a file can have it at all.

Pure: takes and gives text, with `/` between folders, and never looks at a disk. What a path is on a disk, with links
followed, says `project.inside`.
"""

from __future__ import annotations

import os
import posixpath
from pathlib import PurePath, PureWindowsPath


def slashed(path: str) -> str:
    """Return a path from the command line with `/` between folders, where Windows also takes `\\`.

    Files that are shared with other systems hold it so.
    """
    return path.replace("\\", "/") if isinstance(PurePath(), PureWindowsPath) else path


def normal(path: str) -> str:
    """Return a path from the command line as the compiler has it: `slashed`, without what leads nowhere."""
    return posixpath.normpath(slashed(path))


def leaves(path: str, folder: str = "") -> bool:
    """Whether a path, as it is written, does not lie below `folder`."""
    base, target = posixpath.normpath(folder), posixpath.normpath(path)
    if base == ".":
        return target.startswith(("/", "../")) or target == ".."
    return not target.startswith(f"{base.rstrip('/')}/")


def resolve(folder: str, base: str, relative: str) -> str | None:
    """A path that is relative to the file `base`, which lies below `folder`; None where it leaves `folder`."""
    below = base.removeprefix(folder).lstrip("/")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(below), relative))
    return None if leaves(path) else posixpath.join(folder, path)


def no_path(path: str) -> bool:
    """Whether no file can have a path: it holds a NUL, or half a surrogate pair that stands for no byte."""
    try:
        return b"\0" in os.fsencode(path)
    except UnicodeEncodeError:
        return True
