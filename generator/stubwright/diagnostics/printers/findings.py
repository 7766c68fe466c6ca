"""Locates diagnostics in their documents and sorts them for printing."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from stubwright.diagnostics import Diagnostic, Place, Span


class Lines(Protocol):
    """A text's lines. Line and column numbers start at 1."""

    def measure_width(self, number: int) -> int:
        """Return the length of line `number` in characters."""
        ...

    def get_part(self, number: int, first: int, last: int) -> str | None:
        """Return columns `first` (inclusive) to `last` (exclusive) of line `number`, or None without such a line."""
        ...


class Source(Protocol):
    """A source text with the positions of its values."""

    @property
    def lines(self) -> Lines:
        """The lines of the source."""
        ...

    def find_span(self, place: Place) -> Span:
        """Return the narrowest span for a location in the document."""
        ...


Sources: TypeAlias = Mapping[str, Source]
"""Texts that diagnostics refer to, by file name."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A diagnostic with its span in the source."""

    span: Span | None
    diagnostic: Diagnostic


def locate(diagnostics: Iterable[Diagnostic], sources: Sources) -> list[Finding]:
    """Deduplicate diagnostics and sort them by file, position, code and message. Those without a file come first.

    A value that YAML aliases repeat has several locations in the manifest but only one span in the file.
    """
    findings: dict[tuple[Span | None, str, str], Finding] = {}
    for diagnostic in diagnostics:
        span = find_span(diagnostic, sources)
        findings.setdefault((span, diagnostic.code, diagnostic.message), Finding(span, diagnostic))
    return sorted(findings.values(), key=_order)


def _order(finding: Finding) -> tuple[str, int, int, str, str]:
    span, diagnostic = finding.span, finding.diagnostic
    if span is None:
        return "", 0, 0, diagnostic.code, diagnostic.message
    return span.file, span.line, span.column, diagnostic.code, diagnostic.message


def find_span(diagnostic: Diagnostic, sources: Sources) -> Span | None:
    """Return a diagnostic's span, or None if the diagnostic has no location."""
    at = diagnostic.at
    if not isinstance(at, Place):
        return at
    source = sources.get(at.file)
    return source.find_span(at) if source else Span(at.file, 1, 1, 1, 2)
