"""Checks the ownership proofs that the registry requires in the PyPI README and in images.

(modelcontextprotocol.io/registry/package-types, "Ownership Verification")
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from stubwright.diagnostics import Diagnostic, Span

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from stubwright.publishing.settings import Publication

LABEL: Final = "io.modelcontextprotocol.server.name"
_README: Final = re.compile(r"mcp-name:\s*(\S+)")
_LABELLED: Final = re.compile(rf'^\s*LABEL\s+.*{re.escape(LABEL)}="?([^"\s]+)"?', re.MULTILINE)


def find_problems(folder: Path, publication: Publication) -> Iterator[Diagnostic]:
    """Yield the ownership proofs missing from a project's README and Dockerfile. Raises OSError."""
    if publication.is_indexed:
        line = f"<!-- mcp-name: {publication.name} -->"
        if publication.readme is None:
            message = "`[project]` has no `readme`, where the registry looks for the server's name"
            yield Diagnostic("SW410", message, help=f'write `readme = "README.md"`, and add `{line}` to that file')
        else:
            yield from _look(folder / publication.readme, _README, publication.name, f"add the line `{line}`")
    if publication.image:
        line = f'LABEL {LABEL}="{publication.name}"'
        yield from _look(folder / "Dockerfile", _LABELLED, publication.name, f"add `{line}` to its last stage")


def _look(path: Path, pattern: re.Pattern[str], name: str, fix: str) -> Iterator[Diagnostic]:
    shown = path.as_posix()
    if not path.is_file():
        yield Diagnostic("SW410", f"`{shown}` does not exist", help=fix)
        return
    text = path.read_text("utf-8", "replace")
    matches = [match for match in pattern.finditer(text) if match[1] == name]
    if matches:
        return
    other = pattern.search(text)
    if other is None:
        yield Diagnostic("SW410", f"`{shown}` does not mention `{name}`", Span(shown, 1, 1, 1, 2), fix)
        return
    line = text.count("\n", 0, other.start(1)) + 1
    column = other.start(1) - text.rfind("\n", 0, other.start(1))
    at = Span(shown, line, column, line, column + len(other[1]))
    yield Diagnostic("SW410", f"`{shown}` contains `{other[1]}`, although the server's name is `{name}`", at, fix)
