"""Printers: diagnostics as text for people, as JSON, and as GitHub's workflow commands; and differences between files.

Takes diagnostics, and the documents that show their places; gives text that ends in a line break. It prints nothing.
"""

from __future__ import annotations

import difflib
import json as json_
import unicodedata
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias

from toolwright.diagnostics import Diagnostic, Place, Severity, Span
from toolwright.runtime.terminal import one_line, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from toolwright.compile.source import Document
    from toolwright.compile.syntax.positions import Lines

    Documents: TypeAlias = Mapping[str, Document]

WIDTH = 120
"""How many columns of a source line are shown."""

_BEFORE = 40
_MOST = 4 * WIDTH
"""How many characters of a line are looked at, of which some may have no width: a file may be one line of megabytes."""

_BOLD, _RED, _YELLOW, _BLUE, _CYAN, _PLAIN = "\x1b[1m", "\x1b[1;31m", "\x1b[1;33m", "\x1b[1;34m", "\x1b[36m", "\x1b[0m"
_COLOURS: Mapping[Severity, str] = {"error": _RED, "warning": _YELLOW}


@dataclass(frozen=True, slots=True)
class _Finding:
    """A diagnostic with its place found."""

    span: Span | None
    diagnostic: Diagnostic


def text(diagnostics: Iterable[Diagnostic], documents: Documents, color: bool) -> str:
    """For people: each diagnostic with its source line, a caret and its help, then a summary; empty without any."""
    findings = _sorted(diagnostics, documents)
    if not findings:
        return ""
    blocks = [_block(finding, documents, color) for finding in findings]
    return "\n".join([*blocks, _summary(findings)]) + "\n"


def json(diagnostics: Iterable[Diagnostic], documents: Documents) -> str:
    """For programs: a list of objects. Lines and columns count from 1, columns in characters; the end is exclusive."""
    rows = [
        {
            "code": finding.diagnostic.code,
            "severity": finding.diagnostic.severity,
            "message": finding.diagnostic.message,
            "help": finding.diagnostic.help,
            "file": finding.span.file if finding.span else None,
            "line": finding.span.line if finding.span else None,
            "column": finding.span.column if finding.span else None,
            "endLine": finding.span.end_line if finding.span else None,
            "endColumn": finding.span.end_column if finding.span else None,
        }
        for finding in _sorted(diagnostics, documents)
    ]
    return in_ascii(rows)


def in_ascii(value: Any) -> str:
    """A value as JSON in lines, in which whatever a terminal may obey is an escape."""
    return json_.dumps(value, indent=2).replace("\x7f", "\\u007f") + "\n"


def github(diagnostics: Iterable[Diagnostic], documents: Documents) -> str:
    """For GitHub Actions: one workflow command a line, which becomes a note at the line of a pull request."""
    return "".join(f"{_command(finding)}\n" for finding in _sorted(diagnostics, documents))


def diff(path: str, old: bytes | None, new: bytes | None) -> str:
    """What changes in a file, in the unified format; `old` is None where the file comes, `new` where it goes.

    It is to be read: what a terminal would obey is marked, so that it need not be a patch.
    """
    before, after = ([] if data is None else data.decode("utf-8", "replace").splitlines() for data in (old, new))
    shown = one_line(path)
    names = "/dev/null" if old is None else f"a/{shown}", "/dev/null" if new is None else f"b/{shown}"
    rows = "\n".join(map(visible, difflib.unified_diff(before, after, *names, lineterm="")))
    if not rows and (old is None or new is None):  # an empty file
        return f"--- {names[0]}\n+++ {names[1]}"
    return rows or f"{shown}: only line breaks differ"


def _sorted(diagnostics: Iterable[Diagnostic], documents: Documents) -> list[_Finding]:
    """Each diagnostic once, by file, position, code and message; what has no file comes first."""
    findings = dict.fromkeys(_Finding(_span(diagnostic, documents), diagnostic) for diagnostic in diagnostics)
    return sorted(findings, key=_order)


def _order(finding: _Finding) -> tuple[str, int, int, str, str]:
    span, diagnostic = finding.span, finding.diagnostic
    if span is None:
        return "", 0, 0, diagnostic.code, diagnostic.message
    return span.file, span.line, span.column, diagnostic.code, diagnostic.message


def _span(diagnostic: Diagnostic, documents: Documents) -> Span | None:
    at = diagnostic.at
    if not isinstance(at, Place):
        return at
    document = documents.get(at.file)
    return document.span(at) if document else Span(at.file, 1, 1, 1, 2)


def _block(finding: _Finding, documents: Documents, color: bool) -> str:
    span, diagnostic = finding.span, finding.diagnostic

    def paint(words: str, colour: str) -> str:
        return f"{colour}{words}{_PLAIN}" if color else words

    where = f"{span.file}:{span.line}:{span.column}: " if span else ""
    label = paint(f"{diagnostic.severity}[{diagnostic.code}]", _COLOURS[diagnostic.severity])
    rows = [f"{paint(one_line(where), _BOLD)}{label}: {one_line(diagnostic.message)}"]
    document = documents.get(span.file) if span else None
    clipped = _clipped(document.lines, span) if span and document else None
    if span and clipped:
        shown, indent, width = clipped
        number = str(span.line)
        rows.append(f"  {paint(f'{number:>3} |', _BLUE)} {shown}".rstrip())
        gutter = paint(f"{' ' * max(3, len(number))} |", _BLUE)
        rows.append(f"  {gutter} {' ' * indent}{paint('^' * width, _COLOURS[diagnostic.severity])}")
    if diagnostic.help:
        rows.append(f"   {paint('help:', _CYAN)} {one_line(diagnostic.help)}")
    return "\n".join(rows)


def _clipped(lines: Lines, span: Span) -> tuple[str, int, int] | None:
    """A source line that fits, the columns before its carets, and the number of carets; None where it is blank."""
    first, last = span.column - 1, max(span.column, span.end_column - 1)
    width = lines.width(span.line)
    # What is left out at once leaves one character more than is shown, since a joiner is judged by what is before it.
    left = 0 if width <= _MOST else max(0, first - _BEFORE - 1)
    line = lines.part(span.line, left + 1, left + _MOST + 1)
    if line is None or not line.strip():
        return None
    line = one_line(line)
    first, last = first - left, last - left
    start = 0 if first <= _BEFORE or (not left and _columns(line) <= WIDTH) else first - _BEFORE
    end = start
    columns = 0
    while end < len(line) and columns + _columns(line[end]) <= WIDTH:
        columns += _columns(line[end])
        end += 1
    head, tail = "…" if start else "", "…" if left + end < width else ""
    marked = line[first : min(last, end)]
    return f"{head}{line[start:end]}{tail}", len(head) + _columns(line[start:first]), max(1, _columns(marked))


def _columns(words: str) -> int:
    """How many columns of a terminal a text takes."""
    return sum(_column(char) for char in words)


def _column(char: str) -> int:
    if unicodedata.combining(char) or char == "\u200d" or "\ufe00" <= char <= "\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("F", "W") else 1


def _summary(findings: list[_Finding]) -> str:
    severities = [finding.diagnostic.severity for finding in findings]
    counts: list[str] = []
    for severity in ("error", "warning"):
        number = sum(one == severity for one in severities)
        if number:
            counts.append(_counted(number, severity))
    files = len({finding.span.file for finding in findings if finding.span})
    return ", ".join(counts) + (f" in {_counted(files, 'file')}" if files else "")


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def _command(finding: _Finding) -> str:
    span, diagnostic = finding.span, finding.diagnostic
    properties: dict[str, str | int] = {}
    if span:
        properties = {
            "file": span.file,
            "line": span.line,
            "col": span.column,
            "endLine": span.end_line,
            "endColumn": span.end_column,
        }
    properties["title"] = diagnostic.code
    message = diagnostic.message if diagnostic.help is None else f"{diagnostic.message}\nhelp: {diagnostic.help}"
    listed = ",".join(f"{name}={_escaped(str(value), ':,')}" for name, value in properties.items())
    return f"::{diagnostic.severity} {listed}::{_escaped(message)}"


def _escaped(words: str, more: str = "") -> str:
    """Text as a workflow command takes it: GitHub decodes `%25`, `%0D`, `%0A`, and in properties `%3A` and `%2C`."""
    return "".join(f"%{ord(char):02X}" if char in f"%\n{more}" else char for char in visible(words))
