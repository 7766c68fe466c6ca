"""Formats diagnostics as GitHub workflow commands, which become pull request annotations."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from stubwright.diagnostics.printers.findings import locate
from stubwright_runtime.values.terminal import replace_controls

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stubwright.diagnostics import Diagnostic, Span
    from stubwright.diagnostics.printers.findings import Finding, Sources


def render(diagnostics: Iterable[Diagnostic], sources: Sources) -> str:
    """Format diagnostics as workflow commands, one per line."""
    return "".join(f"{_command(finding)}\n" for finding in locate(diagnostics, sources))


def _command(finding: Finding) -> str:
    span, diagnostic = finding.span, finding.diagnostic
    message = diagnostic.message if diagnostic.help is None else f"{diagnostic.message}\nhelp: {diagnostic.help}"
    return format_command(diagnostic.severity, diagnostic.code, message, span)


def format_command(level: str, title: str, message: str, span: Span | None) -> str:
    """Format a workflow command: an annotation at `level`, with a position if it has a span."""
    properties: dict[str, str | int] = {}
    if span:
        properties = {
            "file": find_reported_path(span.file),
            "line": span.line,
            "col": span.column,
            "endLine": span.end_line,
            "endColumn": span.end_column,
        }
    properties["title"] = title
    listed = ",".join(f"{name}={_escape(str(value), ':,')}" for name, value in properties.items())
    return f"::{level} {listed}::{_escape(message)}"


def find_reported_path(file: str) -> str:
    """Return a file's path for annotations: relative to the checkout in GitHub Actions, otherwise unchanged.

    GitHub resolves paths relative to `GITHUB_WORKSPACE`, not to the current directory. Files outside the checkout get
    absolute paths. `git:REV:PATH` stays unchanged.
    """
    root = os.environ.get("GITHUB_WORKSPACE")
    if not root or file.startswith("git:"):
        return file
    path, top = Path(file).resolve(), Path(root).resolve()
    return path.relative_to(top).as_posix() if path.is_relative_to(top) else path.as_posix()


def _escape(words: str, more: str = "") -> str:
    """Escape text so that GitHub decodes it correctly.

    `more` has the characters to escape only in properties: `:` and `,`.
    """
    return "".join(f"%{ord(char):02X}" if char in f"%\n{more}" else char for char in replace_controls(words))
