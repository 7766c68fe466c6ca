"""Digests: of bytes, and of toolwright itself."""

from __future__ import annotations

import hashlib
from functools import cache

from toolwright import package_data


def digest(data: bytes) -> str:
    """The digest of some bytes."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


@cache
def of_generator() -> str:
    """A digest of toolwright itself, so that a changed generator makes everything anew."""
    sha256 = hashlib.sha256()
    for folder in (package_data.ROOT, package_data.RUNTIME, package_data.TEMPLATES):
        for path in sorted(folder.rglob("*")):
            if path.suffix in {".py", ".jinja", ".jinja2", ".json"} and path.is_file():
                sha256.update(path.relative_to(folder).as_posix().encode())
                sha256.update(path.read_bytes())
    return f"sha256:{sha256.hexdigest()}"
