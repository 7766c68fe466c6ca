"""Files of a git repository as they were at a revision, without a checkout.

Takes a revision and gives a reader for `source.load`. It runs `git` to read, and changes nothing.
"""

from __future__ import annotations

import fnmatch
import os
import posixpath
import subprocess
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path, PurePosixPath

from stubwright import paths
from stubwright.project.files.disk import MAX_FILE

_LINK = "120000"


class RevisionError(Exception):
    """There is no such revision, or no git; the message says which."""


@dataclass(frozen=True)
class Revision:
    """Reads files at a revision for `source.load`; paths are relative to the working folder, or absolute.

    A path that is a symbolic link there is read as git has it, and not followed.
    """

    name: str
    _blobs: dict[str, bytes] = field(default_factory=dict)

    def read(self, path: str) -> bytes:
        """Return the file's bytes. Raises OSError."""
        if path not in self._blobs:
            inside = self._inside(path)
            mode, kind, size = self._listed.get(inside, ("", "", 0))
            if not kind:
                folder = "" if inside == "." else f"{inside}/"
                if any(other.startswith(folder) for other in self._listed):
                    raise IsADirectoryError(f"`{path}` is a folder at {self.name}")
                raise FileNotFoundError(2, "no such file at this revision", path)
            if kind != "blob" or mode == _LINK:
                raise OSError(f"it is no ordinary file at {self.name}")
            if size > MAX_FILE:
                raise OSError(f"it is larger than {MAX_FILE // 1024 // 1024} MiB")
            self._blobs[path] = _git("cat-file", "blob", f"{self.name}:{inside}")
        return self._blobs[path]

    def glob(self, folder: str, pattern: str) -> list[str]:
        """Return files below `folder` that match, sorted, with `/` between folders."""
        base = self._inside(folder)
        paths = []
        for path in self._listed:
            below = path if base == "." else path.removeprefix(f"{base}/")
            if (base == "." or path.startswith(f"{base}/")) and _matches(below, pattern):
                paths.append(posixpath.normpath(posixpath.join(folder, below)))
        return sorted(paths)

    def is_within(self, path: str, folder: str) -> bool:
        """Tell whether a path lies below `folder`; links are not followed, so that none leads out."""
        return not paths.leaves(self._inside(path), self._inside(folder))

    def resolve_path(self, path: str) -> str:
        """Return git's path of `REV:PATH` for `read`: relative to the repository's root, with `./` to this folder.

        A file that is only found from the working folder is meant, too.
        """
        if path.startswith(("./", "../", "/")):
            return path
        from_root = posixpath.normpath(path)
        here = self._inside(path)
        if from_root not in self._listed and here in self._listed:
            return path
        return Path(os.path.relpath(Path(self._root, from_root), self._here)).as_posix()

    def _inside(self, path: str) -> str:
        """Return a path from the repository's root; it starts with `../` if it leads out."""
        relative = Path(os.path.relpath(Path(self._here, path), self._root))
        if relative.parts[:1] == ("..",):  # the path may lead through a link to the repository
            relative = Path(os.path.relpath(Path(self._here, path).parent.resolve() / Path(path).name, self._root))
        return relative.as_posix()

    @cached_property
    def _here(self) -> Path:
        return Path.cwd().resolve()

    @cached_property
    def _root(self) -> Path:
        try:
            return Path(os.fsdecode(_git("rev-parse", "--show-toplevel").removesuffix(b"\n"))).resolve()
        except OSError:  # a repository without a working tree
            return self._here

    @cached_property
    def _listed(self) -> dict[str, tuple[str, str, int]]:
        """All files: mode, kind and size by path from the repository's root."""
        # Without -z, git quotes paths that are not ASCII.
        rows = _git("ls-tree", "-r", "-l", "-z", "--full-tree", self.name).split(b"\0")
        listed = {}
        for row in rows:
            if row:
                attributes, _, path = row.partition(b"\t")
                mode, kind, _, size = attributes.decode().split()
                listed[path.decode("utf-8", "surrogateescape")] = mode, kind, int(size) if size.isdecimal() else 0
        return listed


def read_revision(name: str) -> Revision:
    """Return the reader for a revision.

    Raises:
        RevisionError: There is no such revision, or no git.
    """
    if not name or name.startswith("-"):  # git would take it for an option
        raise RevisionError(f"`{name}` is no revision")
    try:
        commit = _git("rev-parse", "--verify", "--quiet", "--end-of-options", f"{name}^{{commit}}")
    except OSError as error:
        raise RevisionError(f"git knows no revision `{name}` here: {error}") from error
    # The commit, and not the name: a branch may move while files are read.
    return Revision(commit.decode().strip().splitlines()[-1])


_OF_HOOKS = ("GIT_DIR", "GIT_INDEX_FILE", "GIT_PREFIX")
"""Variables that git sets for hooks. With `GIT_DIR` alone, the working folder counts as the root of the checkout."""


def _make_environment() -> dict[str, str]:
    """Return the environment for git, which finds the repository of the working folder, in hooks too."""
    if "GIT_WORK_TREE" in os.environ or "GIT_DIR" not in os.environ:
        return dict(os.environ)
    found = {name: value for name, value in os.environ.items() if name not in _OF_HOOKS}
    command = ["git", "rev-parse", "--git-dir"]
    done = subprocess.run(command, env=found, capture_output=True, check=False)  # noqa: S603 - no shell
    return dict(os.environ) if done.returncode else found


def _git(*arguments: str) -> bytes:
    """Return the output of git. Raises OSError, with git's own words."""
    try:
        environment = _make_environment()
        done = subprocess.run(["git", *arguments], env=environment, capture_output=True, check=False)  # noqa: S603, S607 - no shell
    except FileNotFoundError as error:
        raise OSError("git is not installed") from error
    if done.returncode:
        raise OSError(done.stderr.decode("utf-8", "replace").strip() or "it is not there")
    return done.stdout


def _matches(path: str, pattern: str) -> bool:
    """Tell whether a path matches as `Path.glob` has it: `**` is any number of folders, `*` stays in one."""
    return _match(PurePosixPath(path).parts, PurePosixPath(pattern).parts)


def _match(path: tuple[str, ...], pattern: tuple[str, ...]) -> bool:
    if not pattern:
        return not path
    if pattern[0] == "**":
        return any(_match(path[skip:], pattern[1:]) for skip in range(len(path) + 1))
    return bool(path) and fnmatch.fnmatchcase(path[0], pattern[0]) and _match(path[1:], pattern[1:])
