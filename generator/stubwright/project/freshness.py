"""Detects whether a manifest's inputs and outputs are unchanged, so that it need not be compiled.

The output is the package or another named output, such as the page. Digests of inputs and outputs are stored in the
user's cache folder. A checkout is not trusted, so its lock is compared with the stored digests.
"""

from __future__ import annotations

import json
import os
import posixpath
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from stubwright import __version__
from stubwright.incremental import digests
from stubwright.project.files import inside, lock, user_cache
from stubwright.project.files.disk import LISTING, Disk
from stubwright.project.files.layout import find_above, make_relative
from stubwright.project.saved_findings import SavedFindings

_FORMAT: Final = 2
_PACKAGE: Final = "note"


@dataclass(frozen=True, slots=True)
class Note:
    """The inputs and output of a run for one manifest.

    Attributes:
        generator: The digest of stubwright and its options.
        inputs: The digest of each input, keyed by path relative to the folder above the output folder.
        entry: The manifest's entry in the lock, or the files of an output that is not in the lock.
        findings: The run's diagnostics.
    """

    generator: str
    inputs: Mapping[str, str]
    entry: lock.Entry
    findings: SavedFindings


def find_untouched(disk: Disk, output: Path, known: lock.Lock, path: str, option: str) -> Note | None:
    """Return the record of a manifest's last run if all its inputs and outputs are unchanged.

    `path` is the manifest as diagnostics show it; `option` contains the other command-line options.
    """
    manifest = make_relative(path, output)
    note = find_note(disk, output, path, option, _PACKAGE)
    if (
        note is None
        or known.generator != __version__
        or known.manifests.get(manifest) != note.entry
        or _read_unchanged(output, note.entry.files) is None
    ):
        return None
    return note


def find_note(disk: Disk, output: Path, path: str, option: str, what: str) -> Note | None:
    """Return the record of a manifest's last run if all its inputs are unchanged.

    Records with diagnostics are valid only for runs with the same manifest path.
    """
    note = _read(output, make_relative(path, output), what)
    if (
        note is None
        or note.generator != _generator_with(option)
        or (note.findings.diagnostics and note.findings.path != path)
        or not _are_inputs_equal(disk, output, note.inputs)
    ):
        return None
    return note


def recall(
    disk: Disk, output: Path, manifest: str, option: str, is_wanted: Callable[[str], bool], what: str = _PACKAGE
) -> Mapping[str, bytes] | None:
    """Return some of the files that generating `manifest` again would produce; None if they are unknown.

    The record has the digests, so the lock is not read. Runs with diagnostics are ignored.

    Args:
        disk: Reads the inputs.
        output: The output folder.
        manifest: The manifest, with the name used in the lock.
        option: The other command-line options.
        is_wanted: Selects the files to return, given their path below `output`.
        what: The kind of output.
    """
    note = _read(output, manifest, what)
    if (
        note is None
        or note.findings.diagnostics
        or note.generator != _generator_with(option)
        or not _are_inputs_equal(disk, output, note.inputs)
    ):
        return None
    return _read_unchanged(output, {path: seen for path, seen in note.entry.files.items() if is_wanted(path)})


def remember(output: Path, manifest: str, note: Note, what: str = _PACKAGE) -> None:
    """Store a record for the next run."""
    files = {path: [*each] for path, each in note.entry.files.items()}
    seen = {"hash": note.entry.hash, "files": files, "findings": note.findings.dump()}
    data = json.dumps({"format": _FORMAT, "generator": note.generator, "inputs": note.inputs, **seen})
    user_cache.write(user_cache.name(output, manifest, what), data.encode())


def make_note(disk: Disk, output: Path, option: str, entry: lock.Entry, findings: SavedFindings) -> Note:
    """Return the record for a manifest that was read through `disk`."""
    inputs: dict[str, str] = {}
    folders: dict[str, str] = {}
    for path, seen in disk.inputs.items():
        name, listing, pattern = path.partition(LISTING)
        folder, name = (name, "") if listing else posixpath.split(name)
        if folder not in folders:
            folders[folder] = make_relative(folder or ".", output)
        inputs[posixpath.normpath(posixpath.join(folders[folder], name)) + listing + pattern] = seen
    return Note(_generator_with(option), inputs, entry, findings)


def _read(output: Path, manifest: str, what: str) -> Note | None:
    data = user_cache.read(user_cache.name(output, manifest, what))
    if data is None:
        return None
    try:
        value = json.loads(data)
        if value["format"] != _FORMAT:
            return None
        files = {path: frozenset(seen) for path, seen in value["files"].items()}
        findings = SavedFindings.load(value["findings"])
        return Note(value["generator"], value["inputs"], lock.Entry(value["hash"], files), findings)
    except (ValueError, TypeError, KeyError, AttributeError):
        return None


def _generator_with(option: str) -> str:
    return digests.compute_digest(f"{digests.compute_generator_digest()}{option}".encode())


def _read_unchanged(output: Path, files: Mapping[str, frozenset[str]]) -> Mapping[str, bytes] | None:
    within = inside.ContainedFolder(output)
    contents: dict[str, bytes] = {}
    for path, seen in files.items():
        try:
            data = within.read(path)
        except inside.NotWritableError:
            return None
        if data is None or not digests.is_in(seen, data):
            return None
        contents[path] = data
    return contents


def _are_inputs_equal(disk: Disk, output: Path, inputs: Mapping[str, str]) -> bool:
    base = os.path.relpath(find_above(output))
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
                now = digests.compute_digest(disk.read(here))
        except (OSError, ValueError):  # an invalid pattern
            return False
        if now != seen:
            return False
    return True
