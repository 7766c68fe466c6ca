"""Formats diagnostics as JSON."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from stubwright.diagnostics.printers.findings import locate

if TYPE_CHECKING:
    from collections.abc import Iterable

    from stubwright.diagnostics import Diagnostic
    from stubwright.diagnostics.printers.findings import Sources


def render(diagnostics: Iterable[Diagnostic], sources: Sources) -> str:
    """Format diagnostics as JSON. Positions start at 1, columns count characters, and end columns are exclusive."""
    return format_ascii(to_value(diagnostics, sources))


def to_value(diagnostics: Iterable[Diagnostic], sources: Sources) -> list[dict[str, Any]]:
    """Convert diagnostics to the JSON value that `render` formats."""
    return [
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
        for finding in locate(diagnostics, sources)
    ]


def format_ascii(value: Any) -> str:
    """Format a value as indented ASCII JSON, without control characters."""
    return json.dumps(value, indent=2).replace("\x7f", "\\u007f") + "\n"
