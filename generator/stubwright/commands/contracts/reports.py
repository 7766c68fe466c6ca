"""The output of `verify`: for each contract the changes, or the reason that they are unknown."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from stubwright.commands.shared.console import print_painted, write_err, write_out
from stubwright_runtime.values.terminal import to_one_line

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from stubwright.commands.diff import Difference
    from stubwright.importers.reading import SourceError


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome for one contract.

    Attributes:
        path: Its file.
        server: The name of its server for people.
        manifest: The manifest of the new contract; None if it is the same, or unknown.
        difference: The changes; None if there are none, or they are unknown.
        error: The reason that they are unknown; None if they are known.
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
        """The outcome in a word or two."""
        if self.error is not None:
            return "not verified"
        return "unchanged" if self.difference is None or not self.difference.changes else "changed"


def show(outcomes: Sequence[Outcome], style: str) -> None:
    """Print outcomes in a format of `diff`; on standard error also why something is not verified."""
    match style:
        case "json":
            _show_json(outcomes)
        case "sarif":
            _show_sarif(outcomes)
    for number, outcome in enumerate(outcomes):
        if outcome.error is not None:
            _report(outcome.path, outcome.error)
        match style:
            case "text":
                _show_text(outcome)
            case "md":
                _show_markdown(outcome, is_first=number == 0)
            case "github":
                _show_github(outcome)


def _report(path: str, error: SourceError) -> None:
    from stubwright.commands.importing import import_
    from stubwright.importers.reading import DocumentError

    if isinstance(error, DocumentError) and error.diagnostics:
        import_.report(error.diagnostics, error.documents)
    write_err(f"stubwright: {to_one_line(path)} is not verified: {error}")


def _show_text(outcome: Outcome) -> None:
    from stubwright.diff import printers

    difference = outcome.difference
    if difference is not None and difference.changes:
        changes, comparison = difference.changes, difference.comparison
        print_painted(lambda color: printers.format_text(changes, comparison, color=color), sys.stdout)
    elif outcome.error is None:
        write_out(f"{to_one_line(outcome.path)}: unchanged\n")


def _show_markdown(outcome: Outcome, *, is_first: bool) -> None:
    from stubwright.diff import printers

    if outcome.difference is not None and outcome.difference.changes:
        text = printers.format_markdown(outcome.difference.changes, outcome.difference.comparison)
    else:
        why = "" if outcome.error is None else f": {printers.escape(str(outcome.error))}"
        text = f"**{printers.escape(outcome.path)}: {outcome.state}**{why}\n"
    write_out(text if is_first else f"\n{text}")


def _show_github(outcome: Outcome) -> None:
    from stubwright.diagnostics import Span
    from stubwright.diagnostics.printers import github
    from stubwright.diff import printers

    if outcome.error is not None:
        write_out(
            github.format_command("error", "not verified", str(outcome.error), Span(outcome.path, 1, 1, 1, 2)) + "\n"
        )
    elif outcome.difference is not None:
        difference = outcome.difference
        write_out(printers.format_github(difference.changes, difference.comparison, failing=difference.failing))


def _show_sarif(outcomes: Sequence[Outcome]) -> None:
    from stubwright.diff import sarif

    runs = [
        sarif.Run(outcome.difference.changes, outcome.difference.comparison, outcome.difference.failing)
        for outcome in outcomes
        if outcome.difference is not None
    ]
    problems = [(outcome.path, str(outcome.error)) for outcome in outcomes if outcome.error is not None]
    write_out(sarif.render(runs, problems))


def _show_json(outcomes: Sequence[Outcome]) -> None:
    from stubwright.diagnostics.printers.json import format_ascii
    from stubwright.diff import printers

    write_out(
        format_ascii(
            {
                "contracts": [
                    {
                        "contract": outcome.path,
                        "server": outcome.server,
                        "state": outcome.state,
                        "status": outcome.status,
                        "problem": None if outcome.error is None else str(outcome.error),
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
