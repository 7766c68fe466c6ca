"""Formats changes as SARIF 2.1.0 (OASIS) for code scanning in GitHub, Azure DevOps and editors.

Each change code is a rule, and each change a result at its location in the new document or, if it was removed, in the
old one. Ignored changes are suppressed. The diagnostics of a file that cannot be compared are results, too.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import quote

from stubwright import __version__
from stubwright.diagnostics import CODES as DIAGNOSTICS
from stubwright.diagnostics.printers.github import find_reported_path
from stubwright.diagnostics.printers.json import format_ascii
from stubwright.diff.changes import CODES
from stubwright.diff.printers import explain, grade

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from stubwright.diagnostics import Span
    from stubwright.diagnostics.printers.findings import Finding
    from stubwright.diff.changes import Change, Impact
    from stubwright.diff.printers import Comparison

_SCHEMA: Final = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
_LEVELS: Final = {"error": "error", "warning": "warning", "notice": "note"}


@dataclass(frozen=True, slots=True)
class Run:
    """One comparison: its changes, and the impacts that fail the run."""

    changes: Sequence[Change]
    comparison: Comparison
    failing: Collection[Impact]


def render(
    runs: Sequence[Run], problems: Sequence[tuple[str | None, str]] = (), findings: Sequence[Finding] = ()
) -> str:
    """Return a SARIF document.

    Args:
        runs: The successful comparisons.
        problems: The file, if any, and the reason, for each failed comparison.
        findings: The diagnostics of files that could not be compared.
    """
    rules = {change.code: CODES[change.code][1] for run in runs for change in run.changes}
    rules |= {finding.diagnostic.code: DIAGNOSTICS[finding.diagnostic.code].meaning for finding in findings}
    codes = sorted(rules)
    driver = {
        "name": "stubwright",
        "version": __version__,
        "rules": [_make_rule(code, rules[code]) for code in codes],
    }
    notifications = [
        {
            "level": "error",
            "message": {"text": why},
            **({"locations": [{"physicalLocation": _locate_file(file)}]} if file is not None else {}),
        }
        for file, why in problems
    ]
    invocation = {"executionSuccessful": not (problems or findings), "toolExecutionNotifications": notifications}
    results = [
        *(_make_result(change, run, codes) for run in runs for change in run.changes),
        *(_make_finding(finding, codes) for finding in findings),
    ]
    run = {"tool": {"driver": driver}, "invocations": [invocation], "columnKind": "unicodeCodePoints"}
    return format_ascii({"$schema": _SCHEMA, "version": "2.1.0", "runs": [{**run, "results": results}]})


def _make_rule(code: str, meaning: str) -> dict[str, Any]:
    """Return a rule with all fields that GitHub's code scanning displays."""
    help_ = f"{meaning} The result describes the change and who is affected; docs/diagnostics.md lists all codes."
    return {
        "id": code,
        "shortDescription": {"text": meaning},
        "fullDescription": {"text": meaning},
        "help": {"text": help_, "markdown": help_},
        "properties": {"tags": ["mcp"]},
    }


def _make_result(change: Change, run: Run, codes: Sequence[str]) -> dict[str, Any]:
    old, new = run.comparison.find_places(change)
    place = new or old
    properties = {"impact": change.impact, "side": change.side, "target": change.target}
    text = "\n".join((f"{change.subject}: {change.message}", *explain(change)))
    return {
        "ruleId": change.code,
        "ruleIndex": codes.index(change.code),
        "level": _LEVELS[grade(change, run.failing)],
        "message": {"text": text},
        **({"locations": [{"physicalLocation": _locate(place)}]} if place else {}),
        "properties": {key: value for key, value in properties.items() if value is not None},
        **({"suppressions": [{"kind": "external"}]} if change.ignored else {}),
    }


def _make_finding(finding: Finding, codes: Sequence[str]) -> dict[str, Any]:
    diagnostic = finding.diagnostic
    text = diagnostic.message if diagnostic.help is None else f"{diagnostic.message}\nhelp: {diagnostic.help}"
    return {
        "ruleId": diagnostic.code,
        "ruleIndex": codes.index(diagnostic.code),
        "level": diagnostic.severity,
        "message": {"text": text},
        **({"locations": [{"physicalLocation": _locate(finding.span)}]} if finding.span else {}),
    }


def _locate_file(file: str) -> dict[str, Any]:
    """Return a file's location as a URI reference (RFC 3986), relative to the checkout as in GitHub's annotations."""
    return {"artifactLocation": {"uri": quote(find_reported_path(file), errors="surrogateescape")}}


def _locate(span: Span) -> dict[str, Any]:
    region = {
        "startLine": span.line,
        "startColumn": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }
    return {**_locate_file(span.file), "region": region}
