"""Digests: of bytes, and of stubwright itself."""

from __future__ import annotations

import hashlib
from functools import cache
from pathlib import Path

from stubwright import package_data


def digest(data: bytes) -> str:
    """The digest of some bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@cache
def of_generator() -> str:
    """A digest of stubwright itself, so that a changed generator makes everything anew.

    It is the same wherever stubwright was installed from: in a wheel the templates lie below the code, and count once.
    """
    sha256 = hashlib.sha256()
    templates = package_data.TEMPLATES
    for folder in (package_data.ROOT, package_data.RUNTIME, templates):
        for path in sorted(folder.rglob("*"), key=Path.as_posix):
            is_elsewhere = folder != templates and path.is_relative_to(templates)
            if path.suffix in {".py", ".jinja", ".jinja2", ".json"} and not is_elsewhere and path.is_file():
                sha256.update(path.relative_to(folder).as_posix().encode())
                sha256.update(path.read_bytes())
    return f"sha256:{sha256.hexdigest()}"
