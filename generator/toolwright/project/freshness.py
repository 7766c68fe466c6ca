"""Whether a manifest need not be compiled at all: what was read for it, and what was made of it, is as it was."""

from __future__ import annotations

import os
import posixpath
from collections.abc import Mapping
from pathlib import Path

from toolwright import __version__, paths
from toolwright.incremental import digests
from toolwright.project import inside, lock
from toolwright.project.disk import LISTING, Disk
from toolwright.project.layout import above, relative


def untouched(disk: Disk, output: Path, known: lock.Lock, manifest: str, option: str) -> bool:
    """Whether all that `manifest` was made from is as it was, and all that was made of it. It is read no further.

    `option` is what the command line said beside the manifest.
    """
    made = known.manifests.get(manifest)
    return (
        made is not None
        and _same(disk, output, manifest, made.inputs)
        and made.inputs.get(_GENERATOR) == _generator_with(option)
        and _intact(output, known, made)
    )


def up_to_date(output: Path, known: lock.Lock, manifest: str, hash_: str) -> bool:
    """Whether `manifest` last went in with the digest `hash_`, and each file it made is on disk as it was written."""
    made = known.manifests.get(manifest)
    return made is not None and made.hash == hash_ and _intact(output, known, made)


def _intact(output: Path, known: lock.Lock, made: lock.Entry) -> bool:
    if known.generator != __version__:
        return False
    within = inside.Inside(output)
    for path, seen in made.files.items():
        try:
            data = within.read(path)
        except inside.BarredError:
            return False
        if data is None or digests.digest(data) not in seen:
            return False
    return True


def read_inputs(disk: Disk, output: Path, option: str) -> dict[str, str]:
    """What was read for a manifest, and by which generator with which option, as the lock keeps it."""
    found = {_GENERATOR: _generator_with(option)}
    folders: dict[str, str] = {}
    for path, seen in disk.inputs.items():
        name, listing, pattern = path.partition(LISTING)
        folder, name = (name, "") if listing else posixpath.split(name)
        if folder not in folders:
            folders[folder] = relative(folder or ".", output)
        found[posixpath.normpath(posixpath.join(folders[folder], name)) + listing + pattern] = seen
    return found


_GENERATOR = "toolwright"


def _generator_with(option: str) -> str:
    return digests.digest(f"{digests.of_generator()}{option}".encode())


def _same(disk: Disk, output: Path, manifest: str, inputs: Mapping[str, str]) -> bool:
    """Whether reading everything again gives the same."""
    base = os.path.relpath(above(output))
    for path, seen in inputs.items():
        if path == _GENERATOR:
            continue
        folder, listing, pattern = path.partition(LISTING)
        here = Path(os.path.normpath(Path(base, folder))).as_posix()
        if paths.leaves(posixpath.join(folder, pattern), posixpath.dirname(manifest)):
            return False  # nothing else is ever read for it
        try:
            if listing:
                disk.glob(here, pattern)
                now = disk.inputs[here + listing + pattern]
            elif not os.path.isfile(here):  # noqa: PTH113 - as in `read`
                return False
            else:
                now = digests.digest(disk.read(here))
        except (OSError, ValueError):  # a pattern that cannot be one
            return False
        if now != seen:
            return False
    return True
