"""Copies the runtime next to the packages, for projects with `runtime = "vendored"`.

The runtime has its own entry in the lock, since it belongs to no manifest.
"""

from __future__ import annotations

from importlib import metadata

from packaging.requirements import Requirement

from stubwright import package_data
from stubwright.codegen.pages.artifacts import ATTRIBUTES, RUNTIME, Artifact
from stubwright.incremental import digests
from stubwright.project.files import lock, tree

FOLDER = package_data.RUNTIME.name
"""The name of the runtime's folder and package."""

ENTRY = f"{FOLDER}/"
"""Its name among the manifests of the lock; the paths of manifests never end in `/`."""


def make_artifacts() -> tuple[Artifact, ...]:
    """Return the files of the runtime, as installed."""
    root = package_data.RUNTIME
    paths = sorted(path for path in root.rglob("*") if path.is_file() and path.suffix != ".pyc")
    attributes = Artifact(f"{FOLDER}/.gitattributes", ATTRIBUTES)
    files = (
        Artifact(f"{FOLDER}/{path.relative_to(root).as_posix()}", digests.with_lf(path.read_bytes())) for path in paths
    )
    return (attributes, *files)


def list_requirements() -> tuple[str, ...]:
    """Return the requirements of the runtime, for packages with a vendored runtime."""
    return tuple(sorted(each for each in metadata.requires(RUNTIME) or () if Requirement(each).marker is None))


def compare(there: tree.Tree, known: lock.Lock, *, force: bool) -> tree.Changes:
    """Return the changes that copy the runtime to an output folder.

    Args:
        there: The output folder.
        known: The lock as read.
        force: Overwrite files of the runtime that were edited by hand.
    """
    files = make_artifacts()
    digest = digests.compute_digest(b"".join(digests.compute_digest(file.data).encode() for file in files))
    return tree.compare(there, known, ENTRY, lock.Entry(digest), files, force=force)
