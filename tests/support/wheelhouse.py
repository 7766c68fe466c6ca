"""Builds a folder of wheels for the installed third-party distributions, so that installers do not need an index.

The folder is for `--find-links`. It has no wheel of stubwright or its runtime, so installers cannot find these.
"""

from __future__ import annotations

import base64
import hashlib
import zipfile
from importlib.metadata import Distribution
from pathlib import Path

from packaging.tags import parse_tag, sys_tags

import third_party

SUPPORTED = frozenset(sys_tags())
SKIPPED = frozenset({"INSTALLER", "RECORD", "REQUESTED", "direct_url.json", "uv_cache.json"})


def build(folder: Path, *names: str) -> Path:
    """Build wheels for the distributions and all their dependencies, except our own."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, here in third_party.closure(*names).items():
        if not name.startswith("stubwright"):
            _pack(here, folder)
    return folder


def _pack(here: Distribution, folder: Path) -> None:
    tags = [line[5:] for line in (here.read_text("WHEEL") or "").splitlines() if line.startswith("Tag: ")]
    tag = next(tag for tag in tags if SUPPORTED & parse_tag(tag))  # the first tag of a universal wheel is Python 2's
    name = here.metadata["Name"].replace("-", "_").replace(".", "_")
    record = ""
    with zipfile.ZipFile(folder / f"{name}-{here.version}-{tag}.whl", "w") as archive:
        for path in here.files or ():
            if ".." in path.parts or "__pycache__" in path.parts or path.name in SKIPPED:
                continue
            data = path.read_binary()
            archive.writestr(str(path), data)
            digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
            record += f"{path},sha256={digest},{len(data)}\n"
        info = next(path.parts[0] for path in here.files or () if path.parts[0].endswith(".dist-info"))
        archive.writestr(f"{info}/RECORD", f"{record}{info}/RECORD,,\n")
