"""Computes and applies the changes to the output folder.

All files are first written next to their targets, then moved into place once all are on disk, the lock last, so that a
failure leaves the old tree. Unlisted files, edited files, and files behind links are never overwritten or deleted.
Files that differ only in line endings, which git may change, count as unchanged.
"""

from __future__ import annotations

import errno
import os
import posixpath
from collections.abc import Collection, Container, Iterable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from stubwright import __version__
from stubwright.codegen.pages.artifacts import MARK, TYPESCRIPT_MARK, Artifact
from stubwright.diagnostics import Diagnostic, Place
from stubwright.incremental import digests
from stubwright.project.files import inside, lock
from stubwright.project.files.disk import retry, stage
from stubwright.project.files.layout import find_above, show_path


@dataclass(frozen=True, slots=True)
class Change:
    """A changed file: `old` is None for a new file, `new` for a removed file."""

    path: str
    old: bytes | None
    new: bytes | None


@dataclass(frozen=True, slots=True)
class Changes:
    """The changes to a tree, and diagnostics about them; if `refused` is true, no changes are made."""

    changes: tuple[Change, ...]
    kept: int
    lock: lock.Lock
    diagnostics: tuple[Diagnostic, ...]
    refused: bool = False


@dataclass(frozen=True, slots=True)
class Tree:
    """An output folder. Each file is read once."""

    folder: Path
    _files: dict[str, bytes | inside.NotWritableError | None] = field(default_factory=dict)
    _inside: list[inside.ContainedFolder] = field(default_factory=list)

    def read(self, path: str) -> bytes | None:
        """Return the content of a file below the folder; None if it does not exist or reading it is not allowed."""
        content = self._read_file(path)
        return None if isinstance(content, inside.NotWritableError) else content

    def find_refusal(self, path: str) -> inside.NotWritableError | None:
        """Return the reason why a file must not be read, written or deleted, if any."""
        content = self._read_file(path)
        return content if isinstance(content, inside.NotWritableError) else None

    def _read_file(self, path: str) -> bytes | inside.NotWritableError | None:
        if path not in self._files:
            if not self._inside:
                self._inside.append(inside.ContainedFolder(self.folder))
            try:
                self._files[path] = self._inside[0].read(path)
            except inside.NotWritableError as error:
                self._files[path] = error
        return self._files[path]


@dataclass(frozen=True, slots=True)
class Package:
    """A previously generated package, without files that have since been edited or removed."""

    tree: Tree
    name: str
    entry: lock.Entry

    def read_text(self, path: str) -> str | None:
        """Return the text of a file in the package; None if it was removed or edited."""
        data = self.tree.read(f"{self.name}/{path}")
        seen = self.entry.files.get(f"{self.name}/{path}", ())
        return digests.with_lf(data).decode() if data is not None and digests.is_in(seen, data) else None


def find_generated(tree: Tree, known: lock.Lock, manifest: str, package: str) -> Package:
    """Return a manifest's previously generated package, which may be empty."""
    return Package(tree, package, known.manifests.get(manifest, lock.Entry("")))


def compare(
    tree: Tree,
    known: lock.Lock,
    manifest: str,
    new_entry: lock.Entry,
    artifacts: Sequence[Artifact],
    *,
    force: bool,
    at: Place | None = None,
    project: Container[str] | None = None,
) -> Changes:
    """Return the changes that update one manifest's files to `artifacts`.

    The manifest inherits files from removed manifests, such as itself under an old name.

    Args:
        tree: The output folder.
        known: The lock on disk.
        manifest: The manifest's name in the lock.
        new_entry: The entry with the digest of the inputs; its files are added here.
        artifacts: All files of the manifest.
        force: Overwrite generated files that were edited by hand.
        at: The location of the package name, for diagnostics.
        project: All of the project's manifests, if all are compiled; other manifests count as removed.
    """
    output = tree.folder
    known = _inherit_files(known, manifest, artifacts, output, project)
    before = known.manifests.get(manifest, lock.Entry(""))
    changes: list[Change] = []
    problems: list[Diagnostic] = []
    edited: list[Diagnostic] = []
    foreign: list[Diagnostic] = []
    files: dict[str, frozenset[str]] = {}
    unchanged = 0
    for artifact in artifacts:
        owner = known.find_owner(artifact.path)
        if owner not in (None, manifest) and not artifact.is_shared:
            message = f"`{show_path(output, artifact.path)}` is already generated from `{owner}`"
            return _refuse(known, [Diagnostic("SW401", message, at, _TWO_SERVERS)])
        disk = tree.read(artifact.path)
        files[artifact.path] = frozenset({digests.compute_digest(digests.with_lf(artifact.data))})
        if (barred := tree.find_refusal(artifact.path)) is not None:
            foreign.append(_report_obstacle(output, artifact.path, barred))
            continue
        # Changed line endings are not an edit, because git may change them; `--force` restores the bytes.
        if disk is not None and digests.is_same_text(disk, artifact.data) and (disk == artifact.data or not force):
            unchanged += 1
            continue
        name = show_path(output, artifact.path)
        # Even without a lock, the first line shows that a file is generated, so that `--force` can replace it.
        ours = artifact.path in before.files or _is_marked(tree, artifact.path, disk)
        untouched = disk is None or digests.is_in(known.find_digests(artifact.path), disk)
        if untouched or (force and ours):
            changes.append(Change(artifact.path, disk, artifact.data))
        elif ours:
            edited.append(
                Diagnostic(
                    "SW402",
                    "this generated file was edited by hand, so it was left unchanged",
                    Place(name),
                    "move your edits out of the generated file, or discard them with `--force`; nothing was written",
                )
            )
        else:
            foreign.append(_report_obstacle(output, artifact.path))
    planned = {artifact.path for artifact in artifacts}
    others = {path for name, each in known.manifests.items() if name != manifest for path in each.files}
    gone = {path: seen for path, seen in before.files.items() if path not in planned | others}
    # Do not delete obsolete files through links.
    foreign += [
        _report_obstacle(output, path, barred)
        for path in gone
        if (barred := tree.find_refusal(path)) is not None and barred.what == "link"
    ]
    if foreign:
        return _refuse(known, [*dict.fromkeys(foreign)])
    for path, seen in gone.items():
        disk = tree.read(path)
        if disk is None and tree.find_refusal(path) is None:
            continue
        if disk is not None and (force or digests.is_in(seen, disk)):
            changes.append(Change(path, disk, None))
        else:
            problems.append(
                Diagnostic(
                    "SW404",
                    "this file is no longer generated, but it was edited by hand, so it was left unchanged",
                    Place(show_path(output, path)),
                    "delete it or keep it: stubwright no longer manages it",
                )
            )
    if edited:  # show the changes, but never apply only some of them
        return Changes(tuple(changes), unchanged, known, (*edited, *problems), refused=True)
    left = list_folders_above(gone) - list_folders_above(planned | others)
    problems += [
        Diagnostic(
            "SW404",
            "this folder no longer has generated files; stubwright did not write this file, so it was left unchanged",
            Place(show_path(output, path)),
            "move it, or delete the folder",
        )
        for path in _files_in(output, left)
        if path not in gone  # reported above
    ]
    entry = replace(new_entry, files=files) if not problems else lock.Entry("", files)
    manifests = {**known.manifests, manifest: entry}
    return Changes(tuple(changes), unchanged, lock.Lock(__version__, manifests), tuple(problems))


def _files_in(output: Path, folders: Iterable[str]) -> list[str]:
    """List the contents of folders, except Python's caches, without following links."""
    paths = (
        path
        for folder in folders
        if inside.find_kind(output / folder) == "folder"
        for path in (output / folder).iterdir()
    )
    files = (path for path in paths if inside.find_kind(path) != "folder" and "__pycache__" not in path.parts[-2:])
    return sorted(path.relative_to(output).as_posix() for path in files)


def _report_obstacle(output: Path, path: str, barred: inside.NotWritableError | None = None) -> Diagnostic:
    if barred is not None and barred.what == "link":
        return Diagnostic(
            "SW408",
            "this is a link, and files below the output folder are never read, written or deleted through links",
            Place(PurePosixPath(barred.filename).as_posix()),
            "replace it with a file or folder, or choose another output folder with `-o`; nothing was written",
        )
    what = "file" if barred is None else barred.what
    return Diagnostic(
        "SW403",
        f"this {what} cannot be replaced: stubwright did not write it",
        Place(show_path(output, path)),
        f"move the {what}, or choose another output folder with `-o`; nothing was written",
    )


def _inherit_files(
    known: lock.Lock, manifest: str, artifacts: Sequence[Artifact], output: Path, project: Container[str] | None
) -> lock.Lock:
    """Return a lock that assigns the files of removed manifests to `manifest`.

    This affects only removed manifests that share a file with `artifacts`.
    """
    planned = {artifact.path for artifact in artifacts if not artifact.is_shared}
    heirless = {
        name: entry
        for name, entry in known.manifests.items()
        if name != manifest and not planned.isdisjoint(entry.files) and _has_vanished(name, output, project)
    }
    if not heirless:
        return known
    own = known.manifests.get(manifest, lock.Entry(""))
    files = dict(own.files)
    for entry in heirless.values():
        files |= entry.files
    left = {name: entry for name, entry in known.manifests.items() if name not in heirless}
    return replace(known, manifests={**left, manifest: replace(own, files=files)})


def _has_vanished(manifest: str, output: Path, project: Container[str] | None) -> bool:
    return not (find_above(output) / manifest).is_file() or (project is not None and manifest not in project)


RUNTIME_MARK = b"# Part of stubwright's runtime, copied as it is. DO NOT EDIT.\n"
"""The first line of the runtime files that stubwright 0.1 copied into packages."""

RUNTIME_START = b'"""The runtime of generated servers and clients, '
"""The start of the `__init__.py` of a vendored runtime."""

_SILENT = frozenset({".gitattributes", "_runtime/README.md", "manifest.json", "py.typed"})
"""Package files without a marker."""


def _is_marked(tree: Tree, path: str, disk: bytes | None) -> bool:
    """Return whether a file, or the package of an unmarked file, is marked as written by stubwright."""
    if disk is None or digests.with_lf(disk).startswith((MARK, RUNTIME_MARK, TYPESCRIPT_MARK)):
        return disk is not None
    package, _, name = path.partition("/")
    beside = tree.read(f"{package}/__init__.py") or b""
    return beside.startswith(RUNTIME_START) or (name in _SILENT and beside.startswith(MARK))


_TWO_SERVERS = "set a different `python.package` or output folder for one of the two servers; nothing was written"


def _refuse(known: lock.Lock, problems: Sequence[Diagnostic]) -> Changes:
    return Changes((), 0, known, tuple(problems), refused=True)


def prune(output: Path, known: lock.Lock, manifests: Sequence[str]) -> Changes:
    """Return the changes that remove the files of manifests that are no longer in the project."""
    gone = [name for name in known.manifests if name not in manifests]
    result = Changes((), 0, known, ())
    for name in gone:
        step = compare(Tree(output), result.lock, name, lock.Entry(""), (), force=False)
        left = {key: value for key, value in step.lock.manifests.items() if key != name or step.refused}
        result = Changes(
            (*result.changes, *step.changes),
            0,
            replace(step.lock, manifests=left),
            (*result.diagnostics, *step.diagnostics),
        )
    return result


def find_strays(output: Path, before: lock.Lock, known: lock.Lock, packages: Collection[str] | None) -> Changes:
    """Return the changes that remove generated files belonging to no manifest, for example after the lock was lost.

    Args:
        output: The output folder.
        before: The lock on disk.
        known: The lock with all compiled manifests.
        packages: The packages to search; None for all. Other packages could belong to manifests that were not compiled.
    """
    entries = [*before.manifests.values(), *known.manifests.values()]
    listed = {path for entry in entries for path in entry.files}
    tree = Tree(output)
    names = sorted(path.name for path in output.iterdir()) if packages is None and output.is_dir() else packages or ()
    strays_found = []
    # This folder contains modules for all manifests.
    modules = (output / "typescript").glob("*.ts") if packages is None else ()
    possible = {path for name in names for path in _list_package_files(tree, name)}
    possible |= {path.relative_to(output).as_posix() for path in modules}
    for path in sorted(possible - listed):
        data = tree.read(path)
        if data is not None and _is_marked(tree, path, data):
            strays_found.append(Change(path, data, None))
    return Changes(tuple(strays_found), 0, known, ())


def _list_package_files(tree: Tree, name: str) -> Iterator[str]:
    """Yield the files of a package, or a module next to packages, that might be generated."""
    if (tree.read(f"{name}/__init__.py") or b"").startswith(MARK):
        for folder, _, files in os.walk(tree.folder / name):
            relative = Path(folder).relative_to(tree.folder).as_posix()
            yield from (f"{relative}/{file}" for file in files if file.endswith(".py") or file in _SILENT_NAMES)
    elif name.endswith(".py"):
        yield name


_SILENT_NAMES = frozenset(posixpath.basename(path) for path in _SILENT)


def apply(output: Path, changes: Changes) -> None:
    """Apply changes and write the lock, unless the changes were rejected.

    The lock is staged first and moved into place last; until then, `recover` reads the planned changes from it.

    Raises:
        OSError: A file cannot be written. No files have changed unless a move failed; staged files are removed, even
            after an interrupt.
    """
    if changes.refused:
        return
    text = lock.dump(changes.lock).encode()
    written_lock = inside.read_regular(output / lock.NAME)
    is_listed = written_lock is not None and digests.is_same_text(written_lock, text)
    if is_listed and not changes.changes:
        return
    run = os.urandom(8).hex()
    made_folders: list[Path] = []
    staged: list[tuple[Path, Path]] = []
    writes = [change for change in changes.changes if change.new is not None]
    gone = [change.path for change in changes.changes if change.new is None]
    written = {change.path for change in writes}
    files_for_folders = set(gone) & list_folders_above(written)
    in_the_way = files_for_folders | {path for path in gone if not list_folders_above([path]).isdisjoint(written)}
    guard = inside.ContainedFolder(output)
    # A link may have been created since the changes were computed.
    for change in changes.changes:
        guard.check(change.path)
    # A file cannot replace a folder with other contents. Check this first, because a failed move would leave half of
    # the changes applied.
    for target in (output / path for path in written):
        if target.is_dir() and not _has_only(target, {output / path for path in in_the_way}):
            raise IsADirectoryError(errno.EISDIR, "Is a directory", str(target))
    begun = False
    journal = None
    try:
        _make_folders(output, made_folders)
        # After a power failure, only this file lists the generated files, so flush it to disk before any other.
        journal = stage(output / lock.NAME, text, 0, run, safe=bool(changes.changes))
        for number, change in enumerate(writes, 1):
            target = output / change.path
            file = next(iter(list_folders_above([change.path]) & files_for_folders), None)
            # If an old file has the same name as the new file's folder, stage the new file next to the old one.
            beside = target if file is None else output / file
            _make_folders(beside.parent, made_folders)
            staged.append((stage(beside, change.new or b"", number, run), target))
        # From here on, keep the staged lock if a step fails, because `recover` needs it.
        begun = bool(changes.changes)
        # A file and a folder cannot have the same name, so remove these before moving files into place.
        for path in in_the_way:
            _remove(output, output / path)
        while staged:
            # The removals above may have removed folders that were temporarily empty.
            _make_folders(staged[0][1].parent, made_folders)
            retry(lambda: staged[0][0].replace(staged[0][1]))
            staged.pop(0)  # after the move, so that the staged file is removed below if an interrupt comes first
        for path in gone:
            if path not in in_the_way:
                _remove(output, output / path)
        # The lock on disk has the same content, perhaps with CRLF, and is not replaced.
        if is_listed:
            journal.unlink()
        else:
            move = journal.replace
            retry(lambda: move(output / lock.NAME))
    except BaseException:  # an interrupt, too
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)
        if journal is not None and not begun:
            journal.unlink(missing_ok=True)
        for folder in reversed(made_folders):
            with suppress(OSError):  # keep it if it is not empty
                folder.rmdir()
        raise


def _has_only(folder: Path, files: Container[Path]) -> bool:
    """Return whether a folder contains nothing except folders, these files, and Python's caches."""
    files_there = (
        path for path in folder.rglob("*") if inside.find_kind(path) != "folder" and path.parent.name != "__pycache__"
    )
    return all(path in files for path in files_there)


def list_folders_above(paths: Iterable[str]) -> set[str]:
    """Return all parent folders of paths up to the output folder."""
    folders = set()
    for path in paths:
        while (path := path.rpartition("/")[0]) and path not in folders:
            folders.add(path)
    return folders


def _make_folders(folder: Path, created: list[Path]) -> None:
    for path in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        path.mkdir(exist_ok=True)
        created.append(path)


def _remove(output: Path, path: Path) -> None:
    retry(lambda: path.unlink(missing_ok=True))
    for folder in path.parents:
        if folder == output or output not in folder.parents or not remove_empty(folder):
            break


def remove_empty(folder: Path) -> bool:
    """Remove a folder that is empty except for Python's caches; return False if it contains other files."""
    if any(child.name != "__pycache__" for child in folder.iterdir()):
        return False
    cache = folder / "__pycache__"
    # Do not follow a `__pycache__` that is a link.
    for child in (*(cache.glob("*.pyc") if inside.find_kind(cache) == "folder" else ()), cache):
        with suppress(OSError):  # an undeletable cache is harmless
            child.rmdir() if inside.find_kind(child) == "folder" else child.unlink()
    with suppress(OSError):  # not empty after all
        folder.rmdir()
    return True
