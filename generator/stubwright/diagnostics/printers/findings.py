"""Diagnostics with their places found, in the order in which all printers show them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from stubwright.diagnostics import Diagnostic, Place, Span


class Lines(Protocol):
    """The lines of a text. Lines and columns count from 1."""

    def measure_width(self, number: int) -> int:
        """Return the number of characters in a line."""
        ...

    def get_part(self, number: int, first: int, last: int) -> str | None:
        """Return a line from one column to another; None if there is no such line."""
        ...


class Source(Protocol):
    """A text that diagnostics are about."""

    @property
    def lines(self) -> Lines:
        """Its lines."""
        ...

    def find_span(self, place: Place) -> Span:
        """Return the narrowest stretch of text for a place."""
        ...


Sources: TypeAlias = Mapping[str, Source]
"""The texts that diagnostics are about, by the names of their files."""


@dataclass(frozen=True, slots=True)
class Finding:
    """A diagnostic with its place found."""

    span: Span | None
    diagnostic: Diagnostic


def locate(diagnostics: Iterable[Diagnostic], sources: Sources) -> list[Finding]:
    """Locate each diagnostic once, by file, position, code and message; diagnostics without a file come first.

    Values that a YAML alias repeats have several places in the manifest, and only one in the text.
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
    """Return the span of a diagnostic; None if it is not about a file."""
    at = diagnostic.at
    if not isinstance(at, Place):
        return at
    source = sources.get(at.file)
    return source.find_span(at) if source else Span(at.file, 1, 1, 1, 2)
