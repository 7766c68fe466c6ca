"""Watches the files that a run reads, and files that could match its patterns.

Folders are watched without their subfolders. Files are watched by name in their folders, because editors replace files
and missing files can be created.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from watchfiles import Change

    from stubwright.commands.shared.inputs import Run
    from stubwright.project.files.disk import Disk

_PAUSE = 100
"""Milliseconds of quiet that end a group of changes; saves within a group count as one."""

_WAKE = 250
"""Milliseconds that the watcher waits for a change before it returns."""

_MAGIC = re.compile(r"[*?\[]")


@dataclass(frozen=True, slots=True)
class Pattern:
    """A file pattern: the folder before the first wildcard, and the parts of the path from the wildcard on."""

    base: Path
    parts: tuple[str, ...]

    @classmethod
    def make_relative(cls, folder: str | Path, pattern: str) -> Pattern:
        """Return a pattern, relative to `folder` unless it is absolute."""
        *above, name = pattern.split("/")
        fixed = next((index for index, part in enumerate(above) if _MAGIC.search(part)), len(above))
        return cls(Path(os.path.realpath(Path(folder, *above[:fixed]))), (*above[fixed:], name))

    def find_folders(self) -> Iterator[Path]:
        """Yield the folders in which a new file or folder could match."""
        yield self.base
        for count in range(1, len(self.parts)):
            yield from (path for path in self.base.glob("/".join(self.parts[:count])) if path.is_dir())

    def find_files(self) -> Iterator[Path]:
        """Yield the existing files that match."""
        return (path for path in self.base.glob("/".join(self.parts)) if path.is_file())

    def may_find(self, path: Path) -> bool:
        """Return whether a change to a path in one of the folders could change the pattern's matches."""
        return fnmatch(path.name, self.parts[-1]) or (len(self.parts) > 1 and path.is_dir())


@dataclass(frozen=True, slots=True)
class Inputs:
    """The files that runs read, existing or not. `is_whole` is false if an invalid file may include other files."""

    files: frozenset[Path]
    patterns: frozenset[Pattern]
    is_whole: bool = True

    def add_previous(self, previous: Inputs) -> Inputs:
        """Return the current inputs, combined with the previous ones if a file is invalid and may include others."""
        if self.is_whole:
            return self
        return Inputs(self.files | previous.files, self.patterns | previous.patterns, is_whole=False)

    def find_folders(self) -> frozenset[Path]:
        """Return the folders to watch, existing or not."""
        return frozenset(path.parent for path in self.files).union(
            *(pattern.find_folders() for pattern in self.patterns)
        )

    def find_matches(self) -> frozenset[Path]:
        """Return the files that match the patterns."""
        return frozenset[Path]().union(*(pattern.find_files() for pattern in self.patterns))

    def watch(self) -> Callable[[], bool]:
        """Start watching; return a function that checks whether a file was saved, created or deleted since then."""
        first = self._find_states()
        return lambda: self._find_states() != first

    def _find_states(self) -> Mapping[Path, tuple[int, ...]]:
        states: dict[Path, tuple[int, ...]] = {}
        for path in self.files | self.find_matches():
            with suppress(OSError):
                status = path.lstat()
                states[path] = (status.st_mtime_ns, status.st_size, status.st_ino)
        return states


def find_inputs(work: Run, *, imported: bool = False) -> Inputs:
    """Return the files that a run reads; the run itself reports errors in them.

    Args:
        imported: True to include the project's modules that handwritten modules import.
    """
    from stubwright import diagnostics
    from stubwright.compile import source
    from stubwright.project.files import disk

    files: set[str | Path] = {*_find_project_files(work)}
    patterns = (
        [Pattern.make_relative(work.project.folder, pattern) for pattern in work.project.patterns]
        if work.project
        else []
    )
    is_whole = True
    for path in work.manifests:
        bundle, problems = source.load(path, _Recorder(disk.Disk(), files, patterns))
        is_whole = is_whole and not diagnostics.has_errors(problems)
        if bundle is not None:
            files.update(
                _find_handwritten(bundle.documents[bundle.entry].value, work.target.handlers, imported=imported)
            )
    return Inputs(
        frozenset(real_path for path in files for real_path in _resolve_links(path)), frozenset(patterns), is_whole
    )


def wait_for_runs(read: Callable[[], Inputs | None]) -> Iterator[Inputs]:
    """Yield the inputs for each run: first immediately, then after each input change.

    Args:
        read: Returns the current inputs; None if they are unknown.
    """
    import watchfiles

    current = read() or Inputs(frozenset(), frozenset())
    folders = current.find_folders()

    def is_concerned(change: Change, changed: str) -> bool:
        path = Path(changed)
        if path in folders:  # creating or deleting a folder also affects its files
            return change is not watchfiles.Change.modified
        return path in current.files or any(pattern.may_find(path) for pattern in current.patterns)

    is_due = True
    while True:
        folders, matches = current.find_folders(), current.find_matches()
        existing = _find_existing(folders)
        for changes in watchfiles.watch(
            *existing,
            watch_filter=is_concerned,
            step=_PAUSE,
            rust_timeout=_WAKE,
            # A missing folder cannot be watched, so look for it at each timeout.
            yield_on_timeout=True,
            recursive=False,
            ignore_permission_denied=True,
        ):
            changed = {Path(path) for _, path in changes}
            is_due = is_due or bool(changed & (current.files | folders) or _find_existing(folders - existing))
            is_due = is_due or (
                bool(changed) and (current.find_folders(), current.find_matches()) != (folders, matches)
            )
            if not is_due:
                continue
            # The inputs are read and the run happens while the watcher is active, so that no change is missed.
            current = (read() or current).add_previous(current)
            next_folders = current.find_folders()
            # A watcher cannot add folders, so start a new one.
            if changed & folders or next_folders != folders or _find_existing(next_folders) != existing:
                break
            matches = current.find_matches()
            yield current
            is_due = False


def _find_existing(folders: frozenset[Path]) -> frozenset[Path]:
    return frozenset(folder for folder in folders if folder.is_dir())


class _Recorder:
    """A reader that records the files and patterns that it reads."""

    def __init__(self, disk: Disk, files: set[str | Path], patterns: list[Pattern]) -> None:
        self._disk = disk
        self._files = files
        self._patterns = patterns

    def read(self, path: str) -> bytes:
        self._files.add(path)
        return self._disk.read(path)

    def glob(self, folder: str, pattern: str) -> list[str]:
        paths = self._disk.glob(folder, pattern)
        self._patterns.append(Pattern.make_relative(folder, pattern))
        return paths

    def is_within(self, path: str, folder: str) -> bool:
        self._files.add(path)  # a link out of the folder is not followed, but is watched in case it is fixed
        return self._disk.is_within(path, folder)


def _find_project_files(work: Run) -> Iterator[Path]:
    """Yield the paths of the project's `pyproject.toml` and of files in nearer folders that would take precedence."""
    from stubwright.project import config

    working_folder = Path.cwd()
    last = working_folder if work.project is None else Path(os.path.normpath(working_folder / work.project.folder))
    for folder in (working_folder, *working_folder.parents):
        yield folder / config.FILE
        if folder == last:
            return


def _find_handwritten(entry: object, folders: Sequence[str], *, imported: bool) -> Iterator[Path]:
    """Yield the files that can contain a manifest's handlers module.

    With `imported`, also yield the modules that it imports.
    """
    python = entry.get("python") if isinstance(entry, dict) else None
    reference = python.get("handlers") if isinstance(python, dict) else None
    module = reference.partition(":")[0] if isinstance(reference, str) and "\0" not in reference else ""
    if all(module.split(".")):
        from stubwright.project.handwritten import modules

        yield from modules.list_candidates(module, folders)
        if imported:
            yield from modules.find_reached(module, folders)


def _resolve_links(path: str | Path) -> Iterator[Path]:
    folder, name = os.path.split(os.path.normpath(path))
    yield Path(os.path.realpath(folder), name)
    yield Path(os.path.realpath(path))
