"""Prints the results of `verify`: the changes to each contract, or why they are unknown."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stubwright.commands.shared.console import print_painted, write_err, write_out
from stubwright.importers.document_reader import DocumentError
from stubwright_runtime.values.terminal import to_one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stubwright.commands.diff import Difference
    from stubwright.compile.source import Document
    from stubwright.diagnostics import Diagnostic
    from stubwright.importers.document_reader import SourceError


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of verifying one contract.

    Attributes:
        path: The contract's file.
        server: The server's label.
        manifest: The manifest for the new contract; None if it is unchanged or unknown.
        difference: The changes; None if nothing changed or the changes are unknown.
        error: The reason why the changes are unknown; None if they are known.
        status: The exit status.
    """

    path: str
    server: str
    manifest: Mapping[str, Any] | None = None
    difference: Difference | None = None
    error: SourceError | None = None
    status: int = 0

    @property
    def state(self) -> str:
        """The result as printed: not verified, unchanged or changed."""
        if self.error is not None:
            return "not verified"
        return "unchanged" if self.difference is None or not self.difference.changes else "changed"

    @property
    def diagnostics(self) -> Sequence[Diagnostic]:
        """The located errors that prevented the comparison; empty if it failed for another reason."""
        return self.error.diagnostics if isinstance(self.error, DocumentError) else ()

    @property
    def documents(self) -> Mapping[str, Document]:
        """The documents that `diagnostics` refer to."""
        return self.error.documents if isinstance(self.error, DocumentError) else {}


def show(outcomes: Sequence[Outcome], style: str) -> None:
    """Print outcomes in one of `diff`'s formats; print on standard error why a contract was not verified."""
    for outcome in outcomes:
        if outcome.error is not None:
            _report(outcome, outcome.error)
        if style == "text":
            _show_text(outcome)
    write(outcomes, style)


def write(outcomes: Sequence[Outcome], style: str) -> None:
    """Print outcomes as one document in one of `diff`'s formats; print nothing for `text`."""
    match style:
        case "json":
            _show_json(outcomes)
        case "sarif":
            _show_sarif(outcomes)
        case "md":
            write_out("\n".join(map(_format_markdown, outcomes)))
        case "github":
            write_out("".join(map(_format_github, outcomes)))


def _report(outcome: Outcome, error: SourceError) -> None:
    from stubwright.commands.importing import import_

    if outcome.diagnostics:
        import_.report(outcome.diagnostics, outcome.documents)
    write_err(f"stubwright: {to_one_line(outcome.path)} was not verified: {error}")


def _show_text(outcome: Outcome) -> None:
    from stubwright.diff import printers

    difference = outcome.difference
    if difference is not None and difference.changes:
        changes, comparison = difference.changes, difference.comparison
        print_painted(lambda color: printers.format_text(changes, comparison, color=color), sys.stdout)
    elif outcome.error is None:
        write_out(f"{to_one_line(outcome.path)}: unchanged\n")


def _format_markdown(outcome: Outcome) -> str:
    from stubwright.diff import printers

    if outcome.difference is not None and outcome.difference.changes:
        return printers.format_markdown(outcome.difference.changes, outcome.difference.comparison)
    why = "" if outcome.error is None else f": {printers.escape(str(outcome.error))}"
    findings = printers.format_findings(outcome.diagnostics, outcome.documents)
    return f"**{printers.escape(outcome.path)}: {outcome.state}**{why}\n{findings}"


def _format_github(outcome: Outcome) -> str:
    from stubwright.diagnostics import Span
    from stubwright.diagnostics.printers import github
    from stubwright.diff import printers

    if outcome.diagnostics:
        return github.render(outcome.diagnostics, outcome.documents)
    if outcome.error is not None:
        start = Span(outcome.path, 1, 1, 1, 2)
        return github.format_command("error", "not verified", str(outcome.error), start) + "\n"
    difference = outcome.difference
    if difference is None:
        return ""
    return printers.format_github(difference.changes, difference.comparison, failing=difference.failing)


def _show_sarif(outcomes: Sequence[Outcome]) -> None:
    from stubwright.diagnostics.printers.findings import locate
    from stubwright.diff import sarif

    runs = [
        sarif.Run(outcome.difference.changes, outcome.difference.comparison, outcome.difference.failing)
        for outcome in outcomes
        if outcome.difference is not None
    ]
    problems = [(outcome.path, str(outcome.error)) for outcome in outcomes if outcome.error is not None]
    findings = [finding for outcome in outcomes for finding in locate(outcome.diagnostics, outcome.documents)]
    write_out(sarif.render(runs, problems, findings))


def _show_json(outcomes: Sequence[Outcome]) -> None:
    from stubwright.diagnostics.printers import json
    from stubwright.diff import printers

    write_out(
        json.format_ascii(
            {
                "contracts": [
                    {
                        "contract": outcome.path,
                        "server": outcome.server,
                        "state": outcome.state,
                        "status": outcome.status,
                        "problem": None if outcome.error is None else str(outcome.error),
                        "diagnostics": json.to_value(outcome.diagnostics, outcome.documents),
                        "comparison": (
                            None
                            if outcome.difference is None
                            else printers.to_value(outcome.difference.changes, outcome.difference.comparison)
                        ),
                    }
                    for outcome in outcomes
                ]
            }
        )
    )
