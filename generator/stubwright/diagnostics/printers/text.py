"""Formats diagnostics as text: the source line, a caret and the help for each, then a summary."""

from __future__ import annotations

import unicodedata
from typing import TYPE_CHECKING

from stubwright.diagnostics.printers.findings import locate
from stubwright_runtime.values.terminal import to_one_line

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping, Sequence

    from stubwright.diagnostics import Diagnostic, Severity, Span
    from stubwright.diagnostics.printers.findings import Finding, Lines, Sources

WIDTH = 120
"""Maximum number of columns to show of a source line."""

_OF_ONE_CAUSE = frozenset({"SW220", "SW300"})
"""Codes whose findings have a common cause if their messages are equal: one missing target of many references, or one
key in many tools.
"""

_LISTED = 10
"""Maximum number of other locations to list per cause."""

_BEFORE = 40
_MOST = 4 * WIDTH
"""Maximum number of characters to examine per line: a file can be a single line of many megabytes."""

_BOLD, _RED, _YELLOW, _BLUE, _CYAN, _PLAIN = "\x1b[1m", "\x1b[1;31m", "\x1b[1;33m", "\x1b[1;34m", "\x1b[36m", "\x1b[0m"
_COLOURS: Mapping[Severity, str] = {"error": _RED, "warning": _YELLOW}


def render(diagnostics: Iterable[Diagnostic], sources: Sources, color: bool) -> str:
    """Format diagnostics as text; return an empty string if there are none."""
    findings = locate(diagnostics, sources)
    if not findings:
        return ""
    blocks = [_block(first, others, sources, color) for first, *others in _group_by_cause(findings)]
    return "\n".join([*blocks, _summary(findings)]) + "\n"


def _group_by_cause(findings: Sequence[Finding]) -> Iterator[list[Finding]]:
    """Group findings with a common cause, at the position of the first finding.

    Every other finding is its own group.
    """
    alike: dict[tuple[str, str, str | None], list[Finding]] = {}
    for finding in findings:
        diagnostic = finding.diagnostic
        alike.setdefault((diagnostic.code, diagnostic.message, diagnostic.help), []).append(finding)
    for finding in findings:
        diagnostic = finding.diagnostic
        same = alike[diagnostic.code, diagnostic.message, diagnostic.help]
        if diagnostic.code not in _OF_ONE_CAUSE:
            yield [finding]
        elif finding is same[0]:
            yield same


def _block(finding: Finding, others: Sequence[Finding], sources: Sources, color: bool) -> str:
    """Format a finding. `others` are findings with the same cause at other locations."""
    span, diagnostic = finding.span, finding.diagnostic

    def paint(words: str, colour: str) -> str:
        return f"{colour}{words}{_PLAIN}" if color else words

    where = f"{span.file}:{span.line}:{span.column}: " if span else ""
    label = paint(f"{diagnostic.severity}[{diagnostic.code}]", _COLOURS[diagnostic.severity])
    rows = [f"{paint(to_one_line(where), _BOLD)}{label}: {to_one_line(diagnostic.message)}"]
    source = sources.get(span.file) if span else None
    clipped = _clip(source.lines, span) if span and source else None
    if span and clipped:
        shown, indent, width = clipped
        number = str(span.line)
        rows.append(f"  {paint(f'{number:>3} |', _BLUE)} {shown}".rstrip())
        gutter = paint(f"{' ' * max(3, len(number))} |", _BLUE)
        rows.append(f"  {gutter} {' ' * indent}{paint('^' * width, _COLOURS[diagnostic.severity])}")
    if diagnostic.help:
        rows.append(f"   {paint('help:', _CYAN)} {to_one_line(diagnostic.help)}")
    places = dict.fromkeys(f"{other.span.file}:{other.span.line}:{other.span.column}" for other in others if other.span)
    if places:
        listed = ", ".join(list(places)[:_LISTED])
        more = f", and {len(places) - _LISTED} more" if len(places) > _LISTED else ""
        rows.append(f"   {paint('also at:', _CYAN)} {to_one_line(listed)}{more}")
    return "\n".join(rows)


def _clip(lines: Lines, span: Span) -> tuple[str, int, int] | None:
    """Return the visible part of the source line, the carets' column and the number of carets.

    Return None for a blank line.
    """
    first, last = span.column - 1, max(span.column, span.end_column - 1)
    width = lines.measure_width(span.line)
    # Keep one character before the visible part, since a joiner's width depends on the previous character.
    left = 0 if width <= _MOST else max(0, first - _BEFORE - 1)
    line = lines.get_part(span.line, left + 1, left + _MOST + 1)
    if line is None or not line.strip():
        return None
    line = to_one_line(line)
    first, last = first - left, last - left
    start = 0 if first <= _BEFORE or (not left and _columns(line) <= WIDTH) else first - _BEFORE
    end = _find_end(line, start)
    head, tail = "…" if start else "", "…" if left + end < width else ""
    marked = line[first : min(last, end)]
    return f"{head}{line[start:end]}{tail}", len(head) + _columns(line[start:first]), max(1, _columns(marked))


def _find_end(line: str, start: int) -> int:
    """Return the end of the longest part of a line, from `start`, that fits in `WIDTH` terminal columns."""
    if line.isascii():
        return min(len(line), start + WIDTH)
    end = start
    columns = 0
    while end < len(line) and columns + _columns(line[end]) <= WIDTH:
        columns += _columns(line[end])
        end += 1
    return end


def _columns(words: str) -> int:
    return len(words) if words.isascii() else sum(map(_column, words))


def _column(char: str) -> int:
    if char < "\u0300":  # the first combining character; all wide characters follow
        return 1
    if unicodedata.combining(char) or char == "\u200d" or "\ufe00" <= char <= "\ufe0f":
        return 0
    return 2 if unicodedata.east_asian_width(char) in ("F", "W") else 1


def _summary(findings: list[Finding]) -> str:
    severities = [finding.diagnostic.severity for finding in findings]
    counts: list[str] = []
    for severity in ("error", "warning"):
        number = sum(each == severity for each in severities)
        if number:
            counts.append(_format_count(number, severity))
    files = len({finding.span.file for finding in findings if finding.span})
    return ", ".join(counts) + (f" in {_format_count(files, 'file')}" if files else "")


def _format_count(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
