"""`stubwright.lock.json`: the files that stubwright wrote, and their digests.

Each manifest has its own entry, with sorted files, one per line, so that branches that change different files can be
merged. Both sides of a merge are read, with conflict markers or concatenated (git's `merge=union`).
"""

from __future__ import annotations

import json
import posixpath
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from stubwright import paths
from stubwright.compile.syntax import strictjson
from stubwright.diagnostics import Diagnostic

NAME = "stubwright.lock.json"
# `|` marks the common ancestor in git's conflict style `diff3`.
_MARKER = re.compile(r"^(?:<{7}|={7}|>{7}|\|{7}).*$", re.MULTILINE)
_LINE = re.compile(r'\s*(?:\{\}?|\}|"(?:[^"\\]|\\.)*":\s*(?:\{\}?|"(?:[^"\\]|\\.)*")),?')
_PAIR = re.compile(r'^\s*"((?:[^"\\]|\\.)*)":\s*"(sha256:[0-9a-f]{64})",?\s*$')
_OPEN = re.compile(r'^\s*"((?:[^"\\]|\\.)*)":\s*\{\s*$')


class LockError(ValueError):
    """The lock is invalid; the message explains why."""


def report_unreadable(path: str, error: LockError) -> Diagnostic:
    """Return the diagnostic for a lock that cannot be read."""
    return Diagnostic(
        "SW405",
        f"`{path}` cannot be read: {error}",
        help="restore it from version control, or delete it and run `stubwright generate --force`",
    )


@dataclass(frozen=True, slots=True)
class Entry:
    """The output for one manifest.

    `hash` is the digest of all inputs. `files` has the possible digests of each file; there are several only after two
    branches' locks were merged or a run was killed.
    """

    hash: str
    files: Mapping[str, frozenset[str]] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Lock:
    """All entries, by the manifest's path relative to the folder above the output folder."""

    generator: str
    manifests: Mapping[str, Entry] = field(default_factory=dict)

    def find_owner(self, path: str) -> str | None:
        """Return the manifest that `path` was generated from, or None."""
        return next((name for name, entry in self.manifests.items() if path in entry.files), None)

    def find_digests(self, path: str) -> frozenset[str]:
        """Return the possible digests of a file; several manifests can list it."""
        return frozenset[str]().union(*(entry.files.get(path, ()) for entry in self.manifests.values()))


def load(text: str) -> Lock:
    """Parse a lock. Raises LockError if the text is not a valid lock."""
    try:
        lock = _merge_sides(text) if _MARKER.search(text) else _read(text)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise error if isinstance(error, LockError) else LockError(_NO_FORM) from error
    for manifest, entry_ in lock.manifests.items():
        for path in (manifest, *entry_.files):
            if paths.is_impossible(path):
                raise LockError(f"it lists {json.dumps(path)}, which is not a valid path")
        # A branch can contain any lock, and listed files can be deleted.
        for path in entry_.files:
            if paths.leaves(path):
                raise LockError(f"it lists `{path}`, which is outside the output folder")
            # A path with a backslash or a drive colon leaves the folder only on Windows, but a lock is portable.
            if path != posixpath.normpath(path) or path in (".", NAME) or not {"\\", ":"}.isdisjoint(path):
                raise LockError(f"it lists `{path}`, which stubwright does not generate")
    return lock


_NO_FORM = "it is not a stubwright lock file"


def _read(text: str) -> Lock:
    try:
        return _parse_lock(strictjson.load(text))
    except strictjson.DuplicateKeyError:
        return _merge_sides(text)
    except json.JSONDecodeError as error:
        # git's `merge=union` concatenates the lines of both sides, possibly without a comma between them. A truncated
        # lock is rejected, because it does not list all files.
        lines = text.strip().split("\n")
        if lines[:1] + lines[-1:] == ["{", "}"] and all(map(_LINE.fullmatch, lines)):
            return _merge_sides(text)
        raise LockError(f"it is not valid JSON: {error}") from error


def _parse_lock(value: Any) -> Lock:
    return Lock(
        generator=str(value["generator"]),
        manifests={
            name: Entry(
                str(row["hash"]),
                {path: frozenset({str(seen)}) for path, seen in row["files"].items()},
            )
            for name, row in value["manifests"].items()
        },
    )


def dump(lock: Lock) -> str:
    """Format a lock deterministically; a file with several possible digests has a line for each."""
    parts = [f'{{\n  "generator": {_text(lock.generator)},\n  "manifests": {{']
    entries = [_entry(name, entry) for name, entry in sorted(lock.manifests.items())]
    parts.append(",".join(entries) + ("\n  }" if entries else "}"))
    return "".join(parts) + "\n}\n"


def _entry(name: str, entry: Entry) -> str:
    pairs = [(path, seen) for path in sorted(entry.files) for seen in sorted(entry.files[path])]
    lines = ",".join(f"\n        {_text(path)}: {_text(seen)}" for path, seen in pairs)
    files = f'"files": {{{lines}\n      }}' if lines else '"files": {}'
    return f'\n    {_text(name)}: {{\n      "hash": {_text(entry.hash)},\n      {files}\n    }}'


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False)


def unite(lock: Lock, pending: Sequence[Lock]) -> Lock:
    """Add the planned files of killed runs to a lock; the manifests of changed files lose their hash."""
    locks = [lock, *pending]
    manifests: dict[str, Entry] = {}
    for name in dict.fromkeys(name for each_lock in locks for name in each_lock.manifests):
        entries = [each_lock.manifests.get(name) for each_lock in locks]
        first = entries[0]
        if first is None or any(entry != first for entry in entries):
            files: dict[str, frozenset[str]] = {}
            for entry in entries:
                for path, seen in entry.files.items() if entry is not None else ():
                    files[path] = files.get(path, frozenset()) | seen
            first = Entry("", files)
        manifests[name] = first
    return Lock(lock.generator, manifests)


def _merge_sides(text: str) -> Lock:
    """Merge both sides of a conflict. Keep the files and digests of both sides, and drop the hashes."""
    files: dict[str, dict[str, set[str]]] = {}
    manifest = section = ""
    for line in text.split("\n"):
        if opened := _OPEN.match(line):
            name = json.loads(f'"{opened[1]}"')
            section = name
            if name not in ("manifests", "files", "inputs", "tools"):  # older locks have the last two
                manifest = name
                files.setdefault(manifest, {})
        elif pair := _PAIR.match(line):
            name = json.loads(f'"{pair[1]}"')
            if name == "hash":  # start of the entry from the other branch
                section = ""
            elif section == "files" and manifest:
                files[manifest].setdefault(name, set()).add(pair[2])
    return Lock(
        generator="",
        manifests={
            name: Entry("", {path: frozenset(seen) for path, seen in seen_by_path.items()})
            for name, seen_by_path in files.items()
        },
    )
