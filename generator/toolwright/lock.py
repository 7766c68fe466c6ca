"""`toolwright.lock.json`: which files are ours, and what they held when we wrote them.

Takes the lock's text and gives a `Lock`, and back. Each manifest has its own entry with one file on a line, sorted, so
that branches that touch different files merge; a lock that holds both sides of a merge, with conflict markers or one
after the other (git's `merge=union`), is read as both.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from toolwright.diagnostics import Diagnostic

NAME = "toolwright.lock.json"
_MARKER = re.compile(r"^(?:<{7}|={7}|>{7}|\|{7}).*$", re.MULTILINE)
_LINE = re.compile(r'\s*(?:\{\}?|\}|"(?:[^"\\]|\\.)*":\s*(?:\{\}?|"(?:[^"\\]|\\.)*")),?')
_PAIR = re.compile(r'^\s*"((?:[^"\\]|\\.)*)":\s*"(sha256:[0-9a-f]{64})",?\s*$')
_OPEN = re.compile(r'^\s*"((?:[^"\\]|\\.)*)":\s*\{\s*$')


class LockError(ValueError):
    """The lock cannot be read; its text says why."""


def unreadable(path: str, error: LockError) -> Diagnostic:
    """What to tell of a lock that cannot be read."""
    return Diagnostic(
        "TW405",
        f"`{path}` cannot be read: {error}",
        help="restore it from version control, or delete it and run `toolwright generate --force`",
    )


@dataclass(frozen=True, slots=True)
class Entry:
    """What one manifest made.

    `hash` is the digest of all that went in, and `tools` the digest of what went into each tool. `inputs` has a digest
    of each thing that was read, where nothing was found in it to tell the user; `clean` proves the same of `tools`, as
    `proof` has it. `files` has for each file the digests that it may have: more than one only where two branches' locks
    met in a merge.
    """

    hash: str
    files: Mapping[str, frozenset[str]] = field(default_factory=dict)
    tools: Mapping[str, str] = field(default_factory=dict)
    inputs: Mapping[str, str] = field(default_factory=dict)
    clean: str = ""


@dataclass(frozen=True, slots=True)
class Lock:
    """All entries, by the manifest's path relative to the folder above the output folder."""

    generator: str
    manifests: Mapping[str, Entry] = field(default_factory=dict)

    def owner(self, path: str) -> str | None:
        """The manifest whose entry lists `path`."""
        return next((name for name, entry in self.manifests.items() if path in entry.files), None)


def digest(data: bytes) -> str:
    """The digest by which the lock knows a file."""
    return f"sha256:{hashlib.sha256(data).hexdigest()}"


def load(text: str) -> Lock:
    """Read a lock.

    Raises:
        LockError: It is not a lock of this format.
    """
    lock = _merged(text) if _MARKER.search(text) else _read(text)
    for entry_ in lock.manifests.values():
        for path in entry_.files:
            if path.startswith("/") or ".." in path.split("/"):
                raise LockError(f"it lists `{path}`, which is outside the output folder")
    return lock


def _read(text: str) -> Lock:
    try:
        return _parsed(json.loads(text, object_pairs_hook=_unique))
    except _TwiceError:
        return _merged(text)
    except json.JSONDecodeError as error:
        lines = text.splitlines()
        if lines[:1] + lines[-1:] == ["{", "}"] and all(map(_LINE.fullmatch, lines)):
            return _merged(text)
        raise LockError(f"it is not JSON: {error}") from error
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise LockError("it does not have the form of a lock of toolwright's") from error


class _TwiceError(Exception):
    """A mapping has a key twice."""


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    value = dict(pairs)
    if len(value) < len(pairs):
        raise _TwiceError
    return value


def _parsed(value: Any) -> Lock:
    return Lock(
        generator=str(value["generator"]),
        manifests={
            name: Entry(
                str(made["hash"]),
                {path: frozenset({str(seen)}) for path, seen in made["files"].items()},
                {tool: str(seen) for tool, seen in made.get("tools", {}).items()},
                {path: str(seen) for path, seen in made.get("inputs", {}).items()},
                str(made.get("clean", "")),
            )
            for name, made in value["manifests"].items()
        },
    )


def dump(lock: Lock) -> str:
    """Write a lock, the same text for the same lock."""
    value: Mapping[str, Any] = {
        "generator": lock.generator,
        "manifests": {
            name: {
                "hash": made.hash,
                "clean": made.clean,
                "inputs": dict(sorted(made.inputs.items())),
                "tools": dict(sorted(made.tools.items())),
                "files": {path: min(made.files[path]) for path in sorted(made.files)},
            }
            for name, made in sorted(lock.manifests.items())
        },
    }
    return json.dumps(value, indent=2, ensure_ascii=False) + "\n"


def _merged(text: str) -> Lock:
    """Both sides of a merge conflict: a file of either side is ours, with either digest; no manifest is up to date."""
    files: dict[str, dict[str, set[str]]] = {}
    manifest = section = ""
    for line in text.splitlines():
        if opened := _OPEN.match(line):
            name = json.loads(f'"{opened[1]}"')
            section = name
            if name not in ("manifests", "files", "inputs", "tools"):
                manifest = name
                files.setdefault(manifest, {})
        elif pair := _PAIR.match(line):
            name = json.loads(f'"{pair[1]}"')
            if name == "hash":  # the other side's entry starts
                section = ""
            elif section == "files" and manifest:
                files[manifest].setdefault(name, set()).add(pair[2])
    return Lock(
        generator="",
        manifests={
            name: Entry("", {path: frozenset(seen) for path, seen in made.items()}) for name, made in files.items()
        },
    )
