"""Checks paths lexically: whether they leave their folder, and whether they are valid here and on Windows.

Paths use `/` separators. This module does not read the disk. `project.files.inside` resolves links.
"""

from __future__ import annotations

import os
import posixpath
import re
from pathlib import PurePath, PureWindowsPath

_DEVICES = frozenset(
    {"aux", "con", "nul", "prn", "conin$", "conout$"}
    | {f"{port}{number}" for port in ("com", "lpt") for number in "0123456789¹²³"}
)
"""Windows device names, which are reserved in every folder, in any case and with any extension."""

_NOT_ON_WINDOWS = re.compile(r'[<>:"|?*]')


def use_slashes(path: str) -> str:
    """Return a path from the command line with `/` separators. On Windows, `\\` is replaced.

    Files that are shared across systems contain paths in this form.
    """
    return path.replace("\\", "/") if isinstance(PurePath(), PureWindowsPath) else path


def normalize(path: str) -> str:
    """Return a path from the command line with `/` separators and without redundant steps."""
    return posixpath.normpath(use_slashes(path))


def leaves(path: str, folder: str = "") -> bool:
    """Return whether a path, as written, points outside `folder`."""
    base, target = posixpath.normpath(folder), posixpath.normpath(path)
    if base == ".":
        return target.startswith(("/", "../")) or target == ".."
    return not target.startswith(f"{base.rstrip('/')}/")


def resolve(folder: str, base: str, relative: str) -> str | None:
    """Resolve a path relative to the file `base`, which is below `folder`. Return None if the path leaves `folder`."""
    below = base.removeprefix(folder).lstrip("/")
    path = posixpath.normpath(posixpath.join(posixpath.dirname(below), relative))
    return None if leaves(path) else posixpath.join(folder, path)


def is_impossible(path: str) -> bool:
    """Return whether a path is impossible: it contains NUL, or a lone surrogate that does not represent a byte."""
    try:
        return b"\0" in os.fsencode(path)
    except UnicodeEncodeError:
        return True


def is_device(name: str) -> bool:
    """Return whether Windows reserves a name for a device."""
    return name.lower() in _DEVICES


def find_misfit(path: str) -> str | None:
    """Describe why a path is invalid on Windows. Return None if it is valid.

    The rules are in "Naming Files, Paths, and Namespaces"
    (https://learn.microsoft.com/en-us/windows/win32/fileio/naming-a-file).
    """
    if "\\" in path:
        return "`\\` separates folders on Windows, but is part of a name elsewhere"
    for name in path.split("/"):
        if is_device(name.partition(".")[0].rstrip(" ")):
            return f"Windows reserves the name `{name}`"
        if match := _NOT_ON_WINDOWS.search(name):
            return f"Windows does not allow `{match[0]}` in a file name"
        if name.endswith((" ", ".")) and name.strip("."):
            return f"Windows drops the {'space' if name.endswith(' ') else 'dot'} at the end of `{name}`"
    return None
