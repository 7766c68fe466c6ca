"""Whether a manifest need not be compiled at all: what was read for it, and what was made of it, is as it was.

What was read and made is noted in the user's cache folder. The lock is part of a checkout, which anybody may have
written, so that it is compared with the note and not believed.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from stubwright import __version__
from stubwright.incremental import digests
from stubwright.project.files import inside, lock, user_cache
from stubwright.project.files.disk import LISTING, Disk
from stubwright.project.files.layout import above, relative

_FORMAT: Final = 1


@dataclass(frozen=True, slots=True)
class Note:
    """What one run read for a manifest and made of it.

    `generator` is the digest of stubwright and of the options that it ran with. `inputs` has a digest of each thing
    that was read, by its path from the folder above the output folder. `entry` is the manifest's entry in the lock.
    """

    generator: str
    inputs: Mapping[str, str]
    entry: lock.Entry


def untouched(disk: Disk, output: Path, known: lock.Lock, manifest: str, option: str) -> bool:
    """Tell whether all inputs and outputs of `manifest` are as they were. It is read no further.

    `option` is what the command line said beside the manifest.
    """
    note = _read(output, manifest)
    return (
        note is not None
        and note.generator == _generator_with(option)
        and known.generator == __version__
        and known.manifests.get(manifest) == note.entry
        and _same(disk, output, note.inputs)
        and _intact(output, note.entry)
    )


def remember(output: Path, manifest: str, note: Note) -> None:
    """Keep a note for the next run."""
    files = {path: [*seen] for path, seen in note.entry.files.items()}
    seen_files = {"hash": note.entry.hash, "files": files}
    data = json.dumps({"format": _FORMAT, "generator": note.generator, "inputs": note.inputs, **seen_files})
    user_cache.write(_name(output, manifest), data.encode())


def noted(disk: Disk, output: Path, option: str, entry: lock.Entry) -> Note:
    """Return what to note of a manifest for which `disk` has read."""
    inputs: dict[str, str] = {}
    folders: dict[str, str] = {}
    for path, seen in disk.inputs.items():
        name, listing, pattern = path.partition(LISTING)
        folder, name = (name, "") if listing else posixpath.split(name)
        if folder not in folders:
            folders[folder] = relative(folder or ".", output)
        inputs[posixpath.normpath(posixpath.join(folders[folder], name)) + listing + pattern] = seen
    return Note(_generator_with(option), inputs, entry)


def _read(output: Path, manifest: str) -> Note | None:
    data = user_cache.read(_name(output, manifest))
    if data is None:
        return None
    try:
        value = json.loads(data)
        if value["format"] != _FORMAT:
            return None
        files = {path: frozenset(seen) for path, seen in value["files"].items()}
        return Note(value["generator"], value["inputs"], lock.Entry(value["hash"], files))
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _name(output: Path, manifest: str) -> str:
    return user_cache.name(output, manifest, "note")


def _generator_with(option: str) -> str:
    return digests.digest(f"{digests.of_generator()}{option}".encode())


def _intact(output: Path, entry: lock.Entry) -> bool:
    """Tell whether each file is on disk as it was written."""
    within = inside.Inside(output)
    for path, seen in entry.files.items():
        try:
            data = within.read(path)
        except inside.BarredError:
            return False
        if data is None or not digests.is_in(seen, data):
            return False
    return True


def _same(disk: Disk, output: Path, inputs: Mapping[str, str]) -> bool:
    """Tell whether reading everything again gives the same result."""
    base = os.path.relpath(above(output))
    for path, seen in inputs.items():
        folder, listing, pattern = path.partition(LISTING)
        here = Path(os.path.normpath(Path(base, folder))).as_posix()
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
