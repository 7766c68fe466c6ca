"""Computes digests of bytes and of stubwright, and compares text files."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Container, Iterator
from functools import cache
from pathlib import Path
from typing import Final

from stubwright import package_data

_SUFFIXES: Final = frozenset({".py", ".jinja", ".jinja2", ".json", ".css", ".js"})
"""The suffixes of files that affect the output, including styles and scripts, which templates embed in pages."""


def compute_digest(data: bytes) -> str:
    """Return the digest of bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def with_lf(data: bytes) -> bytes:
    """Return text with LF line endings; data with NUL is not text, and stays unchanged.

    Git can check out files with CRLF (`core.autocrlf`), so values shared between checkouts must not depend on line
    endings.
    """
    return data if b"\0" in data else data.replace(b"\r\n", b"\n")


def is_same_text(left: bytes, right: bytes) -> bool:
    """Return whether two files are equal, ignoring line endings."""
    return left == right or with_lf(left) == with_lf(right)


def is_in(digests: Container[str], data: bytes) -> bool:
    """Return whether a list of digests contains the digest of `data`, or of the same text with LF."""
    return compute_digest(data) in digests or compute_digest(with_lf(data)) in digests


@cache
def compute_generator_digest() -> str:
    """Return a digest of stubwright, so that a changed generator invalidates all caches.

    It does not depend on how stubwright is installed: in a wheel, the templates are inside the code's folder, but count
    only once.
    """
    sha256 = hashlib.sha256()
    for folder in (package_data.ROOT, package_data.RUNTIME, package_data.TEMPLATES):
        for name, path in sorted(_list_sources(str(folder), str(package_data.TEMPLATES))):
            sha256.update(name.encode())
            sha256.update(with_lf(Path(path).read_bytes()))
    return f"sha256:{sha256.hexdigest()}"


def _list_sources(folder: str, without: str, above: str = "") -> Iterator[tuple[str, str]]:
    """Yield the files that affect the output, each with its name below the folder and its path.

    Paths are strings, because `Path` objects for seven hundred files took most of the time in an unchanged run.
    """
    with os.scandir(folder) as entries:
        for entry in entries:
            if entry.is_dir():
                if entry.path != without:
                    yield from _list_sources(entry.path, without, f"{above}{entry.name}/")
            elif os.path.splitext(entry.name)[1] in _SUFFIXES:  # noqa: PTH122 - see above
                yield above + entry.name, entry.path
