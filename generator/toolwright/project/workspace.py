"""The only code that touches disk: reads manifests, and writes what was made of them.

Takes planned artifacts and the lock; gives the changes, and carries them out. Everything is written beside its target
first, the new lock before all, and moved into place when all of it is on disk, the lock last: a failure leaves the old
tree, and what a killed run leaves, the next one can tell from what people did (`recover`). A file that the lock does
not list, or that was edited since, is never overwritten or deleted, nor is anything behind a link.
"""

from __future__ import annotations

import errno
import os
import posixpath
import re
import secrets
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path, PurePosixPath

from toolwright import __version__, paths
from toolwright.codegen.artifacts import MARK, RUNTIME_MARK, Artifact
from toolwright.diagnostics import Diagnostic, Place
from toolwright.incremental import digests
from toolwright.project import inside, lock

CACHE = ".toolwright_cache"
"""The folder of what runs keep for the next one, beside the output folder."""

MAX_FILE = 64 * 1024 * 1024
_MOST = 64 * 1024


@dataclass(frozen=True, slots=True)
class Disk:
    """Reads files for `source.load`; paths are relative to the working folder, or absolute.

    `inputs` gets a digest of everything that was read: of each file by its path, and of each listing by its pattern.
    """

    inputs: dict[str, str] = field(default_factory=dict)
    _files: dict[str, tuple[bytes, str]] = field(default_factory=dict)
    _listings: dict[str, tuple[list[str], str]] = field(default_factory=dict)
    _folders: dict[str, inside.Inside] = field(default_factory=dict)

    def afresh(self) -> Disk:
        """A reader that need not read again what this one has read, and has no inputs yet."""
        return Disk({}, self._files, self._listings)

    def read(self, path: str) -> bytes:
        """The file's bytes. Raises OSError, also for a file of more than 64 MiB."""
        if path not in self._files:
            with open(path, "rb") as file:  # noqa: PTH123 - a `Path` takes as long as reading a small file
                data = file.read(_MOST)
                if len(data) == _MOST:  # room for `MAX_FILE` is not made for each small file
                    data += file.read(MAX_FILE + 1 - _MOST)
            if len(data) > MAX_FILE:
                raise OSError(f"it is larger than {MAX_FILE // 1024 // 1024} MiB")
            self._files[path] = data, digests.digest(data)
        data, self.inputs[path] = self._files[path]
        return data

    def glob(self, folder: str, pattern: str) -> list[str]:
        """Files below `folder` that match, sorted, with `/` between folders."""
        key = f"{posixpath.normpath(folder)}{_LISTING}{pattern}"
        if key not in self._listings:
            base = Path(folder)
            above = "" if base == Path() else f"{base.as_posix().rstrip('/')}/"
            found = sorted(path.as_posix().removeprefix(above) for path in base.glob(pattern) if path.is_file())
            self._listings[key] = found, digests.digest("\n".join(found).encode("utf-8", "surrogateescape"))
        found, self.inputs[f"{folder}{_LISTING}{pattern}"] = self._listings[key]
        return [posixpath.normpath(posixpath.join(folder, path)) for path in found]

    def within(self, path: str, folder: str) -> bool:
        """Whether a path, with links followed, lies below `folder`."""
        if folder not in self._folders:
            self._folders[folder] = inside.Inside(folder or ".")
        return self._folders[folder].holds(path)


def find_module(name: str, folders: Sequence[str]) -> Path | None:
    """The file of a module, looked for in `folders`; None where it is in none of them."""
    steps = name.split(".")
    for folder in folders:
        for path in (Path(folder, *steps).with_suffix(".py"), Path(folder, *steps, "__init__.py")):
            if path.is_file():
                return path
    return None


_LISTING = "//"
"""Between the folder and the pattern of a listing among inputs; no path holds it."""


@dataclass(frozen=True, slots=True)
class Change:
    """One file that differs: `new` is None where it goes, `old` is None where it comes."""

    path: str
    old: bytes | None
    new: bytes | None


@dataclass(frozen=True, slots=True)
class Changes:
    """What has to happen to a tree, and what stands in the way; where that `refused` all, nothing has to happen."""

    changes: tuple[Change, ...]
    kept: int
    lock: lock.Lock
    diagnostics: tuple[Diagnostic, ...]
    refused: bool = False


def read_lock(output: Path) -> lock.Lock:
    """The lock of an output folder; an empty one where there is none. It has what killed runs were about to write, too.

    Raises:
        OSError: It is there and cannot be read.
        lock.LockError: It is not a lock.
    """
    path = output / lock.NAME
    if output.is_file():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(path))
    try:
        data = inside.regular(path)
    except inside.BarredError as error:
        raise lock.LockError(f"it is a {error.what}, and no file") from error
    if data is None and inside.kind(path) == "folder":
        raise lock.LockError("it is a folder, and no file")
    known = lock.Lock(__version__) if data is None else _loaded(data)
    return lock.union(known, [pending for pending in _journals(output).values() if pending is not None])


def _loaded(data: bytes) -> lock.Lock:
    try:
        return lock.load(data.decode())
    except UnicodeDecodeError as error:
        raise lock.LockError("it is not UTF-8") from error


def interrupted(output: Path) -> bool:
    """Whether a run that wrote to an output folder was killed, and none has come since. Raises OSError."""
    return any(pending is not None for pending in _journals(output).values())


_JOURNAL = re.compile(rf"\.{re.escape(lock.NAME)}\.0\.[0-9a-f]{{16}}\.tmp")
"""The name of a lock that a run staged; before the end stands the run's own part of the names of all it stages."""


def _journals(output: Path) -> dict[str, lock.Lock | None]:
    """The locks that runs staged and never moved into place, by their runs; None where nothing was staged after it."""
    try:
        paths = sorted(path for path in output.iterdir() if _JOURNAL.fullmatch(path.name))
    except (FileNotFoundError, NotADirectoryError):
        return {}
    found: dict[str, lock.Lock | None] = {}
    for path in paths:
        data = inside.regular(path) if inside.kind(path) == "file" else None
        if data is not None:
            run = path.name.split(".")[-2]
            try:
                found[run] = _loaded(data)
            except lock.LockError:
                found[run] = None
    return found


def recover(output: Path) -> None:
    """Clear what killed runs left in an output folder, and note in the lock what they may have written.

    Each step can be done again, so that this can be killed, too.

    Raises:
        OSError: Something cannot be read or written.
        lock.LockError: The lock cannot be read.
    """
    journals = _journals(output)
    if not journals:
        return
    known = read_lock(output)
    if interrupted(output):
        staged = _stage(output / lock.NAME, lock.dump(known).encode(), 0, secrets.token_hex(8), safe=True)
        staged.replace(output / lock.NAME)
    ours = {folder for entry in known.manifests.values() for folder in _above_each(entry.files)}
    ends = tuple(f".{run}.tmp" for run in journals)
    for folder, _, names in os.walk(output, topdown=False):
        for name in names:
            if name.endswith(ends) and not _JOURNAL.fullmatch(name):
                Path(folder, name).unlink(missing_ok=True)
        if Path(folder).relative_to(output).as_posix() in ours:
            _remove_empty(Path(folder))
    for run in journals:
        (output / f".{lock.NAME}.0.{run}.tmp").unlink(missing_ok=True)


@contextmanager
def alone(output: Path) -> Iterator[None]:
    """Wait until no other run writes to an output folder, and keep others waiting; where the system can do that."""
    if sys.platform == "win32":
        yield
        return
    import fcntl

    above = next(folder for folder in (_above(output), *_above(output).parents) if folder.is_dir())
    with ExitStack() as held:
        with suppress(OSError):  # some disks of other machines know no locks
            handle = os.open(above, os.O_RDONLY)
            held.callback(os.close, handle)
            fcntl.flock(handle, fcntl.LOCK_EX)
            held.callback(fcntl.flock, handle, fcntl.LOCK_UN)  # a helper may still have the handle
        yield


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


def relative(path: str, output: Path) -> str:
    """A path as the lock has it: relative to the folder above the output folder, so that checkouts are alike."""
    return Path(os.path.relpath(path, _above(output))).as_posix()


def told(path: str, output: Path) -> str:
    """A manifest's path as what is made of it tells it, which is the same in all checkouts."""
    name = relative(path, output)
    return Path(path).name if name.startswith("..") else name


def read_inputs(disk: Disk, output: Path, option: str) -> dict[str, str]:
    """What was read for a manifest, and by which generator with which option, as the lock keeps it."""
    found = {_GENERATOR: _generator_with(option)}
    folders: dict[str, str] = {}
    for path, seen in disk.inputs.items():
        name, listing, pattern = path.partition(_LISTING)
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
    above = os.path.relpath(_above(output))
    for path, seen in inputs.items():
        if path == _GENERATOR:
            continue
        folder, listing, pattern = path.partition(_LISTING)
        here = Path(os.path.normpath(Path(above, folder))).as_posix()
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


def _above(output: Path) -> Path:
    return Path(os.path.normpath(Path.cwd() / output)).parent


@dataclass(frozen=True, slots=True)
class Tree:
    """An output folder, of which each file is read once."""

    folder: Path
    _files: dict[str, bytes | inside.BarredError | None] = field(default_factory=dict)
    _inside: list[inside.Inside] = field(default_factory=list)

    def read(self, path: str) -> bytes | None:
        """A file below the folder; None where there is none that can be read."""
        found = self._found(path)
        return None if isinstance(found, inside.BarredError) else found

    def barred(self, path: str) -> inside.BarredError | None:
        """What keeps a file from being read, written or deleted."""
        found = self._found(path)
        return found if isinstance(found, inside.BarredError) else None

    def _found(self, path: str) -> bytes | inside.BarredError | None:
        if path not in self._files:
            if not self._inside:
                self._inside.append(inside.Inside(self.folder))
            try:
                self._files[path] = self._inside[0].read(path)
            except inside.BarredError as error:
                self._files[path] = error
        return self._files[path]


@dataclass(frozen=True, slots=True)
class Package:
    """A package as it was generated before, as far as it is still on disk as it was written."""

    tree: Tree
    name: str
    entry: lock.Entry

    def text(self, path: str) -> str | None:
        """A file of the package; None where it is gone or was edited."""
        data = self.tree.read(f"{self.name}/{path}")
        seen = self.entry.files.get(f"{self.name}/{path}", ())
        return data.decode() if data is not None and digests.digest(data) in seen else None


def generated(tree: Tree, known: lock.Lock, manifest: str, package: str) -> Package:
    """The package that `manifest` made before; an empty one if it made none."""
    return Package(tree, package, known.manifests.get(manifest, lock.Entry("")))


def compare(
    tree: Tree,
    known: lock.Lock,
    manifest: str,
    made: lock.Entry,
    artifacts: Sequence[Artifact],
    *,
    force: bool,
    at: Place | None = None,
    project: Container[str] | None = None,
) -> Changes:
    """What it takes to bring the files of one manifest to `artifacts`.

    What a manifest made that is gone, such as this one under its old name, becomes this one's.

    Args:
        tree: The output folder.
        known: The lock as it was read.
        manifest: The manifest's name in the lock.
        made: The digests of what went into the artifacts; its files are filled in here.
        artifacts: All files of the manifest.
        force: Overwrite generated files that were edited by hand.
        at: Where the package gets its name.
        project: All manifests of the project, where they are all compiled; others are gone.
    """
    output = tree.folder
    known = _inherited(known, manifest, artifacts, output, project)
    before = known.manifests.get(manifest, lock.Entry(""))
    changes: list[Change] = []
    problems: list[Diagnostic] = []
    foreign: list[Diagnostic] = []
    files: dict[str, frozenset[str]] = {}
    kept = 0
    for artifact in artifacts:
        owner = known.owner(artifact.path)
        if owner not in (None, manifest):
            message = f"`{shown(output, artifact.path)}` is already made from `{owner}`"
            return _refused(known, [Diagnostic("TW401", message, at, _TWO_SERVERS)])
        disk = tree.read(artifact.path)
        files[artifact.path] = frozenset({digests.digest(artifact.data)})
        if (barred := tree.barred(artifact.path)) is not None:
            foreign.append(_in_the_way(output, artifact.path, barred))
            continue
        if disk == artifact.data:
            kept += 1
            continue
        name = shown(output, artifact.path)
        ours = artifact.path in before.files or _marked(tree, artifact.path, disk)
        untouched = disk is None or digests.digest(disk) in before.files.get(artifact.path, ())
        if untouched or (force and ours):
            changes.append(Change(artifact.path, disk, artifact.data))
        elif ours:
            files[artifact.path] = before.files.get(artifact.path, files[artifact.path])
            problems.append(
                Diagnostic(
                    "TW402",
                    "this generated file was edited by hand, and is left as it is",
                    Place(name),
                    "move your change out of the generated file, or overwrite it with `--force`",
                )
            )
        else:
            foreign.append(_in_the_way(output, artifact.path))
    planned = {artifact.path for artifact in artifacts}
    gone = {path: seen for path, seen in before.files.items() if path not in planned}
    foreign += [
        _in_the_way(output, path, barred)
        for path in gone
        if (barred := tree.barred(path)) is not None and barred.what == "link"
    ]
    if foreign:
        return _refused(known, [*dict.fromkeys(foreign)])
    for path, seen in gone.items():
        disk = tree.read(path)
        if disk is None and tree.barred(path) is None:
            continue
        if disk is not None and (force or digests.digest(disk) in seen):
            changes.append(Change(path, disk, None))
        else:
            problems.append(
                Diagnostic(
                    "TW404",
                    "this generated file is no longer made, but was edited by hand, and is left as it is",
                    Place(shown(output, path)),
                    "delete it, or keep it: it is no longer toolwright's",
                )
            )
    entry = replace(made, files=files) if not problems else lock.Entry("", files)
    manifests = {**known.manifests, manifest: entry}
    return Changes(tuple(changes), kept, lock.Lock(__version__, manifests), tuple(problems))


def _in_the_way(output: Path, path: str, barred: inside.BarredError | None = None) -> Diagnostic:
    if barred is not None and barred.what == "link":
        return Diagnostic(
            "TW408",
            "this is a link: nothing below the output folder is read, written or deleted through one",
            Place(PurePosixPath(barred.filename).as_posix()),
            "put a file or folder in its place, or choose another output folder with `-o`; nothing was written",
        )
    what = "file" if barred is None else barred.what
    return Diagnostic(
        "TW403",
        f"this {what} is in the way: toolwright did not write it",
        Place(shown(output, path)),
        f"move the {what}, or choose another output folder with `-o`; nothing was written",
    )


def _inherited(
    known: lock.Lock, manifest: str, artifacts: Sequence[Artifact], output: Path, project: Container[str] | None
) -> lock.Lock:
    """The lock, in which `manifest` has the files of those that are gone and made one of `artifacts`."""
    planned = {artifact.path for artifact in artifacts}
    heirless = {
        name: entry
        for name, entry in known.manifests.items()
        if name != manifest and not planned.isdisjoint(entry.files) and _is_gone(name, output, project)
    }
    if not heirless:
        return known
    own = known.manifests.get(manifest, lock.Entry(""))
    files = dict(own.files)
    for entry in heirless.values():
        files |= entry.files
    left = {name: entry for name, entry in known.manifests.items() if name not in heirless}
    return replace(known, manifests={**left, manifest: replace(own, files=files)})


def _is_gone(manifest: str, output: Path, project: Container[str] | None) -> bool:
    return not (_above(output) / manifest).is_file() or (project is not None and manifest not in project)


def _marked(tree: Tree, path: str, disk: bytes | None) -> bool:
    """Whether a file says itself that toolwright wrote it, or where it cannot, its package does."""
    if disk is None or disk.startswith((MARK, RUNTIME_MARK)):
        return disk is not None
    package, _, name = path.partition("/")
    beside = tree.read(f"{package}/__init__.py") if name in ("manifest.json", "py.typed") else None
    return beside is not None and beside.startswith(MARK)


_TWO_SERVERS = "give one of the two servers another `python.package`, or another output folder; nothing was written"


def _refused(known: lock.Lock, problems: Sequence[Diagnostic]) -> Changes:
    """No changes, and why."""
    return Changes((), 0, known, tuple(problems), refused=True)


def prune(output: Path, known: lock.Lock, manifests: Sequence[str]) -> Changes:
    """What it takes to remove the files of manifests that the project no longer has."""
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


def apply(output: Path, changes: Changes) -> None:
    """Carry changes out, and write the lock; nothing of either where they were refused.

    The lock is staged first, and put into place last: in between it tells `recover` what was about to be.

    Raises:
        OSError: Something cannot be written; no file has changed, but where a move failed half-way. What was staged
            is gone, also after an interrupt.
    """
    if changes.refused:
        return
    text = lock.dump(changes.lock).encode()
    is_listed = inside.regular(output / lock.NAME) == text
    if is_listed and not changes.changes:
        return
    run = secrets.token_hex(8)
    made_folders: list[Path] = []
    staged: list[tuple[Path, Path]] = []
    writes = [change for change in changes.changes if change.new is not None]
    gone = [change.path for change in changes.changes if change.new is None]
    written = {change.path for change in writes}
    files_for_folders = set(gone) & _above_each(written)
    in_the_way = files_for_folders | {path for path in gone if not _above_each([path]).isdisjoint(written)}
    guard = inside.Inside(output)
    for change in changes.changes:
        guard.check(change.path)
    for target in (output / path for path in written):
        if target.is_dir() and not _has_only(target, {output / path for path in in_the_way}):
            raise IsADirectoryError(errno.EISDIR, "Is a directory", str(target))
    begun = False
    journal = None
    try:
        _make_folders(output, made_folders)
        journal = _stage(output / lock.NAME, text, 0, run, safe=bool(changes.changes))
        for number, change in enumerate(writes, 1):
            target = output / change.path
            file = next(iter(_above_each([change.path]) & files_for_folders), None)
            beside = target if file is None else output / file
            _make_folders(beside.parent, made_folders)
            staged.append((_stage(beside, change.new or b"", number, run), target))
        begun = bool(changes.changes)
        for path in in_the_way:
            _remove(output, output / path)
        while staged:
            _make_folders(staged[0][1].parent, made_folders)
            staged[0][0].replace(staged[0][1])
            staged.pop(0)
        for path in gone:
            if path not in in_the_way:
                _remove(output, output / path)
        if is_listed:
            journal.unlink()
        else:
            journal.replace(output / lock.NAME)
    except BaseException:  # an interrupt, too
        for temporary, _ in staged:
            temporary.unlink(missing_ok=True)
        if journal is not None and not begun:
            journal.unlink(missing_ok=True)
        for folder in reversed(made_folders):
            with suppress(OSError):  # it holds something by now: it stays
                folder.rmdir()
        raise


def _has_only(folder: Path, files: Container[Path]) -> bool:
    """Whether a folder holds nothing but folders, some of these files, and what Python keeps of them."""
    found = (path for path in folder.rglob("*") if inside.kind(path) != "folder" and path.parent.name != "__pycache__")
    return all(path in files for path in found)


def _above_each(paths: Iterable[str]) -> set[str]:
    """The folders that paths stand in, up to the output folder."""
    found = set()
    for path in paths:
        while (path := path.rpartition("/")[0]) and path not in found:
            found.add(path)
    return found


def read_cache(output: Path, manifest: str) -> bytes | None:
    """What a run kept of a manifest for the next one; None where there is nothing that can be read."""
    with suppress(OSError):
        return inside.regular(_cache_file(output, manifest))
    return None


def write_cache(output: Path, manifest: str, data: bytes) -> None:
    """Keep something of a manifest for the next run, where the disk lets us: it only saves time."""
    path = _cache_file(output, manifest)
    with suppress(OSError):
        if not path.parent.is_dir():
            create(path.parent / ".gitignore", "*\n")
        _put(path, data)


def _cache_file(output: Path, manifest: str) -> Path:
    name = f"{posixpath.basename(manifest)[:40]}.{digests.digest(manifest.encode())[-16:]}.json"
    return _above(output) / CACHE / name


def text(path: Path) -> str | None:
    """The text of a file that a command may write anew; None where there is none.

    Raises:
        OSError: It cannot be read, or is a link or no file.
    """
    data = inside.regular(path)
    if data is None and inside.kind(path) == "folder":
        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(path))
    return None if data is None else data.decode("utf-8", "replace")


def create(path: Path, text: str, encoding: str = "utf-8") -> None:
    """Write one file that a person asked for by name, whole or not at all. Raises OSError, with the name of a file."""
    _put(path, text.encode(encoding))


def _put(path: Path, data: bytes) -> None:
    staged = None
    try:
        with suppress(FileExistsError):  # what stands there is no folder, which the next line tells better
            path.parent.mkdir(parents=True, exist_ok=True)
        _temporary(path, 0, "toolwright").unlink(missing_ok=True)  # a killed run left it
        staged = _stage(path, data, 0, "toolwright")
        staged.replace(path)
    except OSError as error:
        if staged is not None:
            staged.unlink(missing_ok=True)
        raise OSError(error.errno, error.strerror, str(path)) from error


def _temporary(target: Path, number: int, run: str) -> Path:
    """Where a run stages its file of that number."""
    return target.with_name(f".{target.name[:40]}.{number}.{run}.tmp")


def _stage(target: Path, data: bytes, number: int, run: str, *, safe: bool = False) -> Path:
    """Write `data` beside `target`, so that a rename puts it into place; where `safe`, it also outlasts a power cut."""
    mode = target.stat().st_mode & 0o777 if target.is_file() else None
    temporary = _temporary(target, number, run)
    handle = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL | _BINARY, 0o666 if mode is None else mode)
    try:
        with os.fdopen(handle, "wb") as file:
            file.write(data)
            if safe:
                file.flush()
                os.fsync(file.fileno())
        if mode is not None:  # of which the umask may have taken something
            temporary.chmod(mode)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    return temporary


_BINARY = getattr(os, "O_BINARY", 0)


def _make_folders(folder: Path, made: list[Path]) -> None:
    """Make a folder and those above it, and note each in `made`."""
    for path in reversed([path for path in (folder, *folder.parents) if not path.exists()]):
        path.mkdir(exist_ok=True)
        made.append(path)


def _remove(output: Path, path: Path) -> None:
    path.unlink(missing_ok=True)
    for folder in path.parents:
        if folder == output or output not in folder.parents or not _remove_empty(folder):
            break


def _remove_empty(folder: Path) -> bool:
    """Remove a folder that holds nothing but what Python keeps; whether it did not hold more."""
    if any(child.name != "__pycache__" for child in folder.iterdir()):
        return False
    cache = folder / "__pycache__"
    for child in (*(cache.glob("*.pyc") if inside.kind(cache) == "folder" else ()), cache):
        with suppress(OSError):  # a cache that cannot be removed is no reason to fail
            child.rmdir() if inside.kind(child) == "folder" else child.unlink()
    with suppress(OSError):  # not empty after all: somebody else's
        folder.rmdir()
    return True


def shown(output: Path, path: str) -> str:
    """A path below the output folder as a user knows it."""
    return str(PurePosixPath(output) / path)
