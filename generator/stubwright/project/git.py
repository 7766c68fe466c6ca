"""Reads files from a git repository at a revision, without a checkout."""

from __future__ import annotations

import fnmatch
import os
import posixpath
import subprocess
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

from stubwright import paths
from stubwright.project.files.disk import MAX_FILE

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

_LINK = "120000"


@dataclass(frozen=True, slots=True)
class _Entry:
    """An entry from `git ls-tree`, with the folder of its repository."""

    mode: str
    kind: str
    object_id: str
    size: int
    folder: Path


class RevisionError(Exception):
    """The revision does not exist, or git is not installed."""


@dataclass(frozen=True)
class Revision:
    """Reads files at a revision for `source.load`; paths are relative to the working folder, or absolute.

    Symbolic links are not followed. Submodules are read at the commit recorded in the revision.
    """

    name: str
    _environment: Mapping[str, str]
    _blobs: dict[str, bytes] = field(default_factory=dict)

    def read(self, path: str) -> bytes:
        """Return the file's bytes. Raises OSError."""
        if path not in self._blobs:
            inside = self.find_path(path)
            entry = self._listed.get(inside)
            if entry is None:
                folder = "" if inside == "." else f"{inside}/"
                if any(other.startswith(folder) for other in self._listed):
                    raise IsADirectoryError(f"`{path}` is a folder at {self.name}")
                raise FileNotFoundError(2, "no such file at this revision", path)
            if entry.kind != "blob" or entry.mode == _LINK:
                raise OSError(f"it is not a regular file at {self.name}")
            if entry.size > MAX_FILE:
                raise OSError(f"it is larger than {MAX_FILE // 1024 // 1024} MiB")
            self._blobs[path] = self._git(entry.folder, "cat-file", "blob", entry.object_id)
        return self._blobs[path]

    def glob(self, folder: str, pattern: str) -> list[str]:
        """Return matching files below `folder`, sorted, with `/` separators."""
        base = self.find_path(folder)
        paths = []
        for path in self._listed:
            below = path if base == "." else path.removeprefix(f"{base}/")
            if (base == "." or path.startswith(f"{base}/")) and _matches(below, pattern):
                paths.append(posixpath.normpath(posixpath.join(folder, below)))
        return sorted(paths)

    def is_within(self, path: str, folder: str) -> bool:
        """Return whether a path is below `folder`, without following links."""
        return not paths.leaves(self.find_path(path), self.find_path(folder))

    def resolve_path(self, path: str) -> str:
        """Resolve the PATH in `REV:PATH` for `read`: relative to the repository root, or to this folder with `./`.

        A file that exists only relative to the working folder is also accepted.
        """
        if path.startswith(("./", "../", "/")):
            return path
        from_root = posixpath.normpath(path)
        here = self.find_path(path)
        if from_root not in self._listed and here in self._listed:
            return path
        return Path(os.path.relpath(Path(self._root, from_root), self._here)).as_posix()

    def find_path(self, path: str) -> str:
        """Return a path relative to the repository root. A path outside the repository starts with `../`."""
        relative = Path(os.path.relpath(Path(self._here, path), self._root))
        if relative.parts[:1] == ("..",):  # the path may go through a link to the repository
            relative = Path(os.path.relpath(Path(self._here, path).parent.resolve() / Path(path).name, self._root))
        return relative.as_posix()

    @cached_property
    def _here(self) -> Path:
        return Path.cwd().resolve()

    @cached_property
    def _root(self) -> Path:
        try:
            root = _git(self._environment, "rev-parse", "--show-toplevel")
            return Path(os.fsdecode(root.removesuffix(b"\n"))).resolve()
        except OSError:  # a repository without a working tree
            return self._here

    @cached_property
    def _listed(self) -> dict[str, _Entry]:
        """All files by path relative to the repository root, including checked-out submodules."""
        return dict(self._list_tree(self._root, self.name))

    def _list_tree(self, folder: Path, commit: str) -> Iterator[tuple[str, _Entry]]:
        # Without -z, git quotes non-ASCII paths.
        for row in self._git(folder, "ls-tree", "-r", "-l", "-z", "--full-tree", commit).split(b"\0"):
            attributes, _, name = row.partition(b"\t")
            if not name:
                continue
            path = name.decode("utf-8", "surrogateescape")
            mode, kind, object_id, size = attributes.decode().split()
            yield path, _Entry(mode, kind, object_id, int(size) if size.isdecimal() else 0, folder)
            if kind == "commit" and (folder / path / ".git").exists():
                try:
                    files = list(self._list_tree(folder / path, object_id))
                except OSError:  # the submodule's commit was not fetched
                    continue
                yield from ((f"{path}/{inner}", entry) for inner, entry in files)

    def _git(self, folder: Path, *arguments: str) -> bytes:
        """Return git's output in this repository or in a submodule. Raises OSError."""
        if folder == self._root:
            return _git(self._environment, *arguments)
        return _git(_leave_hook(self._environment), "-C", str(folder), *arguments)


def read_revision(name: str) -> Revision:
    """Return a reader for a revision.

    Raises:
        RevisionError: The revision does not exist, or git is not installed.
    """
    if not name or name.startswith("-"):  # git would read it as an option
        raise RevisionError(f"`{name}` is not a revision")
    try:
        environment = _make_environment()
        commit = _git(environment, "rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except OSError as error:
        raise RevisionError(f"git has no revision `{name}` here: {error}") from error
    # Use the commit, because a branch may move while files are read.
    return Revision(commit.decode().strip().splitlines()[-1], environment)


_OF_HOOKS = ("GIT_DIR", "GIT_INDEX_FILE", "GIT_PREFIX", "GIT_WORK_TREE")
"""Variables that git sets for hooks. With only `GIT_DIR`, git takes the working folder as the checkout's root."""


def _make_environment() -> dict[str, str]:
    """Return an environment in which git finds the working folder's repository, even in hooks."""
    if "GIT_WORK_TREE" in os.environ or "GIT_DIR" not in os.environ:
        return dict(os.environ)
    found = _leave_hook(os.environ)
    try:
        _git(found, "rev-parse", "--git-dir")
    except OSError:
        return dict(os.environ)
    return found


def _leave_hook(environment: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in environment.items() if name not in _OF_HOOKS}


def _git(environment: Mapping[str, str], *arguments: str) -> bytes:
    """Return git's output. Raises OSError with git's message."""
    try:
        done = subprocess.run(["git", *arguments], env=environment, capture_output=True, check=False)  # noqa: S603, S607 - no shell
    except FileNotFoundError as error:
        raise OSError("git is not installed") from error
    if done.returncode:
        raise OSError(done.stderr.decode("utf-8", "replace").strip() or "it does not exist")
    return done.stdout


def _matches(path: str, pattern: str) -> bool:
    """Return whether a path matches a pattern of `Path.glob`: `**` matches any number of folders, `*` one name."""
    return _match(PurePosixPath(path).parts, PurePosixPath(pattern).parts)


def _match(path: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_match(path[skip:], pattern[1:]) for skip in range(len(path) + 1))
    return bool(path) and fnmatch.fnmatchcase(path[0], pattern[0]) and _match(path[1:], pattern[1:])
