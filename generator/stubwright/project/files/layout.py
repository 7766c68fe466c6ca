"""Paths in the lock and in generated files, which are the same in all checkouts."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath


def make_relative(path: str, output: Path) -> str:
    """Return a path as in the lock: relative to the folder above the output folder."""
    return Path(os.path.relpath(path, find_above(output))).as_posix()


def quote_manifest(path: str, output: Path) -> str:
    """Return a manifest's path as in generated files."""
    name = make_relative(path, output)
    return Path(path).name if name.startswith("..") else name


def find_above(output: Path) -> Path:
    """Return the folder above the output folder. The lock's paths are relative to that folder."""
    return _absolute(output).parent


def name(output: Path) -> str:
    """Return the name of the output folder relative to the folder above it, even for `.`."""
    return _absolute(output).name


def show_path(output: Path, path: str) -> str:
    """Return a path below the output folder as in messages."""
    return str(PurePosixPath(output) / path)


def _absolute(output: Path) -> Path:
    return Path(os.path.normpath(Path.cwd() / output))
