"""Builds wheels of the runtime and the compiler from the installed files, without downloading anything.

Editable and regular installations produce the same wheels, except for build metadata.
"""

from __future__ import annotations

import base64
import hashlib
import io
import zipfile
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path
from typing import Final

from stubwright import package_data
from stubwright.project.files import disk

RUNTIME: Final = "stubwright-runtime"
COMPILER: Final = "stubwright"

_OF_AN_INSTALL: Final = frozenset({"INSTALLER", "RECORD", "REQUESTED", "WHEEL", "direct_url.json", "uv_cache.json"})
"""Files in `*.dist-info` that describe an installation, or that are rewritten."""
_EPOCH: Final = (1980, 1, 1, 0, 0, 0)
"""The timestamp for all files, so that wheels are reproducible: the earliest that zip archives support."""


@dataclass(frozen=True, slots=True)
class Wheel:
    """A wheel: its file name and content."""

    name: str
    data: bytes


def pack_runtime() -> Wheel:
    """Build a wheel of the installed runtime.

    Raises:
        importlib.metadata.PackageNotFoundError: The runtime is not installed as a distribution.
    """
    return _pack(RUNTIME, _read_files(package_data.RUNTIME, "stubwright_runtime"))


def pack_compiler() -> Wheel:
    """Build a wheel of this compiler.

    Raises:
        importlib.metadata.PackageNotFoundError: The compiler is not installed as a distribution.
    """
    code = _read_files(package_data.ROOT, "stubwright")
    return _pack(COMPILER, {**code, **_read_files(package_data.TEMPLATES, "stubwright/templates")})


def write(folder: Path, *, runtime_only: bool) -> list[Path]:
    """Write the wheels to a folder, creating it if missing, and return their paths.

    Args:
        folder: The destination folder.
        runtime_only: Omit the compiler's wheel.

    Raises:
        importlib.metadata.PackageNotFoundError: The runtime or the compiler is not installed as a distribution.
        OSError: A wheel cannot be written.
    """
    packed = [pack_runtime(), *([] if runtime_only else [pack_compiler()])]
    folder.mkdir(parents=True, exist_ok=True)
    for wheel in packed:
        disk.write(folder / wheel.name, wheel.data)
    return [folder / wheel.name for wheel in packed]


def find_shared(wheel: Wheel, project: Path) -> str:
    """Return a wheel's path relative to a new project, preferably of the same wheel in a neighboring project.

    In a uv workspace, the requirements of all projects must use the same URL.
    """
    own = f"wheels/{wheel.name}"
    for path in sorted(project.resolve().parent.glob(f"*/{own}")):
        sibling = path.parent.parent
        if sibling.name != project.resolve().name and path.read_bytes() == wheel.data:
            return f"../{sibling.name}/{own}"
    return own


def _read_files(folder: Path, name: str) -> dict[str, bytes]:
    paths = sorted(path for path in folder.rglob("*") if path.is_file() and path.suffix != ".pyc")
    return {f"{name}/{path.relative_to(folder).as_posix()}": path.read_bytes() for path in paths}


def _pack(distribution: str, code: Mapping[str, bytes]) -> Wheel:
    here = metadata.distribution(distribution)
    stem = f"{distribution.replace('-', '_')}-{here.version}"
    files = dict(code)
    for path in here.files or ():
        folder, *rest = path.parts
        if folder.endswith(".dist-info") and rest and rest[0] not in _OF_AN_INSTALL:
            files[f"{stem}.dist-info/{'/'.join(rest)}"] = path.read_binary()
    files[f"{stem}.dist-info/WHEEL"] = (
        b"Wheel-Version: 1.0\nGenerator: stubwright\nRoot-Is-Purelib: true\nTag: py3-none-any\n"
    )
    record = f"{stem}.dist-info/RECORD"
    rows = [f"{path},sha256={_digest(data)},{len(data)}\n" for path, data in files.items()]
    files[record] = "".join([*rows, f"{record},,\n"]).encode()
    return Wheel(f"{stem}-py3-none-any.whl", _zip(files))


def _digest(data: bytes) -> str:
    return base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()


def _zip(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            entry = zipfile.ZipInfo(path, _EPOCH)
            entry.compress_type = zipfile.ZIP_DEFLATED
            entry.external_attr = 0o644 << 16
            archive.writestr(entry, data)
    return buffer.getvalue()
