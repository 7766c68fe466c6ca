"""Adds, replaces or removes a server's entry in a client's configuration file.

The file is read, edited in memory, read again, and replaced with a staged file. Concurrent runs wait for each other; if
a client writes at the same time, the edit is retried. Links and modes are preserved.
"""

from __future__ import annotations

import codecs
import json
import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stubwright import naming
from stubwright.compile.syntax.positions import Lines
from stubwright.diagnostics import Diagnostic, Place
from stubwright.project.clients import jsonc, toml
from stubwright.project.clients.jsonc import EditError
from stubwright.project.files import disk, inside, locking

if TYPE_CHECKING:
    from stubwright import ir
    from stubwright.project.clients.table import Client
    from stubwright.project.launch import Launch

NAME: Final = re.compile(r"[A-Za-z0-9_-]{1,64}")
"""Names that every client accepts; Claude Code and Codex accept no other characters."""

_TRIES: Final = 20
_PRIVATE: Final = 0o600
_BY_HAND: Final = "nothing was written; correct the file, or add the output of `--print` manually"


class RefusedError(Exception):
    """A file is left unchanged; `diagnostic` explains why."""

    def __init__(self, diagnostic: Diagnostic) -> None:
        super().__init__(diagnostic.message)
        self.diagnostic = diagnostic


@dataclass(frozen=True, slots=True)
class Entry:
    """A server's entry in a client's file."""

    client: Client
    name: str
    value: Mapping[str, Any]

    @classmethod
    def make(cls, client: Client, name: str, launch: Launch, variables: Mapping[str, str]) -> Entry:
        """Return a server's entry with the user's variables."""
        words = {"command": launch.python, "args": [*launch.arguments]}
        return cls(client, name, {**client.more, **words, "env": launch.make_environment(variables)})

    @property
    def path(self) -> tuple[str, str]:
        """The path of keys to the entry in the file."""
        return self.client.key, self.name

    def format_file(self) -> str:
        """Return the text for a file with only this entry."""
        return self.put("")

    def put(self, text: str) -> str:
        """Add this entry to a file's text. Raises EditError."""
        if self.client.form == "toml":
            return toml.with_table(text, self.path, self.value)
        return jsonc.with_member(text, self.path, self.value, comments=self.client.form == "jsonc")

    def remove(self, text: str) -> str:
        """Remove this entry from a file's text. Raises EditError."""
        if self.client.form == "toml":
            return toml.without_table(text, self.path)
        return jsonc.without_member(text, self.path, comments=self.client.form == "jsonc")

    def list_replaced(self) -> tuple[str, ...]:
        """Return the parts of the entry that the client would expand: the command, or variable names."""
        expands = self.client.expands
        if expands is None:
            return ()
        words = [self.value["command"], *self.value["args"]]
        replaced = ["the command"] if any(expands.search(word) for word in words) else []
        return (*replaced, *(f"`{name}`" for name, value in self.value["env"].items() if expands.search(value)))


def edit(file: Path, change: Callable[[str], str], *, private: bool) -> bool:
    """Edit a file and return whether it changed.

    Args:
        file: The file, which may not exist.
        change: Returns the new text; an entry's `put` or `remove`.
        private: True to make a new file accessible only to its owner.

    Raises:
        RefusedError: The file is invalid, is not a regular file, or cannot be read or written. It is unchanged.
    """
    # Follow a link, because moving the new file onto it would replace it.
    target = Path(os.path.realpath(file))
    try:
        target.parent.mkdir(parents=True, exist_ok=True)  # so that all runs lock the same folder
        with locking.exclusive_lock(target.parent):
            for _ in range(_TRIES):
                before = _read(file)
                after = _edited(before or b"", change, file)
                if after == (before or b""):
                    return False
                # If the client has written in the meantime, edit the new text.
                if _read(file) == before:
                    disk.write(target, after, mode=_PRIVATE if private else None)
                    return True
    except OSError as error:
        reason = error.strerror or str(error)
        raise RefusedError(Diagnostic("SW406", f"the file cannot be written: {reason}", Place(str(file)))) from error
    message = "the file keeps changing, so it was not edited"
    raise RefusedError(Diagnostic("SW406", message, Place(str(file)), "close the client, and run the command again"))


def _read(file: Path) -> bytes | None:
    """Return the bytes of a file, following links, or None if the file does not exist. Raises RefusedError."""
    target = os.path.realpath(file)
    try:
        data = inside.read_regular(target)
        if data is None and inside.find_kind(target) == "folder":
            raise IsADirectoryError(0, "it is a folder")
    except OSError as error:
        reason = error.strerror or str(error)
        raise RefusedError(Diagnostic("SW001", f"the file cannot be read: {reason}", Place(str(file)))) from error
    return data


def _edited(data: bytes, change: Callable[[str], str], file: Path) -> bytes:
    mark = codecs.BOM_UTF8 if data.startswith(codecs.BOM_UTF8) else b""
    try:
        text = data[len(mark) :].decode()
    except UnicodeDecodeError as error:
        lines = data[: error.start + len(mark)].split(b"\n")
        message = f"the file is not valid UTF-8: line {len(lines)} has the byte 0x{data[error.start + len(mark)]:02x}"
        raise RefusedError(Diagnostic("SW002", message, Place(str(file)), _BY_HAND)) from error
    try:
        return mark + change(text).encode()
    except EditError as error:
        raise RefusedError(report_misplaced(text, file, error)) from error


def report_misplaced(text: str, file: Path, error: EditError) -> Diagnostic:
    """Return the diagnostic for an edit error, without quoting the text, which may contain secrets."""
    diagnostic = Lines(text).report(str(file), error.problem)
    fix = f"{diagnostic.help}; nothing was written" if diagnostic.help else _BY_HAND
    return Diagnostic(diagnostic.code, diagnostic.message, diagnostic.at, fix)


def find_default_name(manifest: ir.Manifest) -> str:
    """Return a server's default name in a client's file: its own name without characters that clients reject."""
    name = str(manifest.document["server"]["name"])
    if NAME.fullmatch(name):
        return name
    plain = "-".join(naming.split_words(name))
    return plain if NAME.fullmatch(plain) else re.sub("[^A-Za-z0-9_-]", "", manifest.package)[:64] or "server"


def format_snippet(name: str, url: str) -> str:
    """Return the JSON configuration, as in most clients, for a server at a URL."""
    return json.dumps({"mcpServers": {name: {"type": "http", "url": url}}}, indent=2, ensure_ascii=False) + "\n"
