"""Copies the runtime next to the packages, for projects with `runtime = "vendored"`.

The runtime has its own entry in the lock, because it belongs to no manifest.
"""

from __future__ import annotations

from importlib import metadata

from packaging.requirements import Requirement

from stubwright import package_data
from stubwright.codegen.pages.artifacts import ATTRIBUTES, RUNTIME, Artifact
from stubwright.incremental import digests
from stubwright.project.files import lock, tree

FOLDER = package_data.RUNTIME.name
"""The runtime's folder and package name."""

ENTRY = f"{FOLDER}/"
"""The runtime's key among the manifests in the lock; manifest paths never end in `/`."""


def make_artifacts() -> tuple[Artifact, ...]:
    """Return the installed runtime's files."""
    root = package_data.RUNTIME
    paths = sorted(path for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc")
    attributes = Artifact(f"{FOLDER}/.gitattributes", ATTRIBUTES)
    files = (
        Artifact(f"{FOLDER}/{path.relative_to(root).as_posix()}", digests.with_lf(path.read_bytes())) for path in paths
    )
    return (attributes, *files)


def list_requirements() -> tuple[str, ...]:
    """Return the runtime's requirements, for packages with a vendored runtime."""
    return tuple(sorted(each for each in metadata.requires(RUNTIME) or () if Requirement(each).marker is None))


def compare(there: tree.Tree, known: lock.Lock, *, force: bool) -> tree.Changes:
    """Return the changes that copy the runtime to an output folder.

    Args:
        there: The output folder.
        known: The lock on disk.
        force: Overwrite runtime files that were edited by hand.
    """
    files = make_artifacts()
    digest = digests.compute_digest(b"".join(digests.compute_digest(file.data).encode() for file in files))
    return tree.compare(there, known, ENTRY, lock.Entry(digest), files, force=force)
