"""Paths as the lock and generated files tell them, which are the same in all checkouts."""

from __future__ import annotations

import os
from pathlib import Path, PurePosixPath


def make_relative(path: str, output: Path) -> str:
    """Return a path as the lock has it: relative to the folder above the output folder, so that checkouts are alike."""
    return Path(os.path.relpath(path, find_above(output))).as_posix()


def quote_manifest(path: str, output: Path) -> str:
    """Return a manifest's path as generated files quote it, which is the same in all checkouts."""
    name = make_relative(path, output)
    return Path(path).name if name.startswith("..") else name


def find_above(output: Path) -> Path:
    """Return the folder above the output folder, which the lock's paths count from."""
    return _absolute(output).parent


def name(output: Path) -> str:
    """Return the name of the output folder, as a command in the folder above it has it; also of `.`."""
    return _absolute(output).name


def show_path(output: Path, path: str) -> str:
    """Return a path below the output folder as shown to users."""
    return str(PurePosixPath(output) / path)


def _absolute(output: Path) -> Path:
    return Path(os.path.normpath(Path.cwd() / output))
