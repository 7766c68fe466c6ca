"""`stubwright diff`: print the changes between two manifests, and who is affected."""

from __future__ import annotations

import sys
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any, Final

from stubwright.commands.shared import inputs as works
from stubwright.commands.shared import servers
from stubwright.commands.shared.console import UsageError, print_painted, write_err, write_note, write_out
from stubwright.commands.shared.options import CommandParser, declare
from stubwright_runtime.mcp.vocabulary import SECTIONS
from stubwright_runtime.values.terminal import to_one_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Mapping, Sequence

    from stubwright.commands.shared.comparison import Version
    from stubwright.compile.source import Document
    from stubwright.diagnostics import Diagnostic
    from stubwright.diff.changes import Change, Impact, Key
    from stubwright.diff.printers import Comparison

_VERSION = "a manifest, a saved tools/list result, git:REV, git:REV:PATH, a URL, or -- COMMAND"
_FAILING: dict[str, tuple[Impact, ...]] = {
    "breaking": ("breaking",),
    "may-break": ("breaking", "may break"),
    "words": ("breaking", "words"),
    "any": ("breaking", "may break", "words", "compatible", "cosmetic"),
    "never": (),
}


_OPTIONS: Final = f"""
old OLD   {_VERSION}
new NEW?  the same; with git:REV alone, the project's manifests
"""

_CHANGES: Final = f"""
--format text|json|md|github|sarif  the output format
--fail-on {"|".join(_FAILING)}  the changes that cause exit status 1; may be repeated
  (default: breaking, and changed wording from other programs)
"""


def add(verbs: Any) -> None:
    """Register the `diff` subcommand and its options."""
    diff: CommandParser = verbs.add_parser(
        "diff",
        _diff,
        help="show what changed between two manifests, and who is affected",
        usage="stubwright diff [options] OLD NEW\n"
        "       stubwright diff [options] OLD -- COMMAND ARGS…\n"
        "       stubwright diff [options] git:REV",
        epilog="A live server's command comes last: `stubwright diff specs/weather.yaml -- python -m weather_mcp`.",
    )
    diff.takes_command = True
    declare(diff, _OPTIONS)
    add_options(diff)
    servers.add_passing(diff)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options for the format, failing changes, and targets."""
    declare(parser, _CHANGES, fail_on={"action": "append", "default": None})
    works.add_target(parser)


_NUMBERS = (506, 507, 508, 509, 515, 519, 520, 521, 522, 523, 524, 525, 556, 557, 561)
_UNLISTED = frozenset(f"SW{number}" for number in _NUMBERS)
"""Changes that are invisible in lists: access, list settings, audit records, policies, questions, server settings,
handles, old names, completions, and contents.
"""
_ORDERS = frozenset(("SW503", section.name) for section in SECTIONS)
"""Codes and subjects of changes to a list's order, which a contract does not record."""


def _diff(arguments: argparse.Namespace) -> int:
    from stubwright.commands.shared import comparison

    works.choose_targets(arguments)
    try:
        pairs = _find_pairs(arguments)
    except comparison.VersionError as error:
        write_err(f"stubwright: {error}")
        _write_problem(arguments.format, problem=str(error))
        return 1
    if len(pairs) > 1 and arguments.format in ("json", "sarif"):
        fix = "specify one manifest, as in `stubwright diff git:REV MANIFEST`"
        raise UsageError(f"--format {arguments.format} is one document: {fix}")
    listed: set[Key] = set()
    return max(compare(old, new, arguments, listed) for old, new in pairs)


def compare(old: Version, new: Version, arguments: argparse.Namespace, listed: set[Key] | None = None) -> int:
    """Print the changes in the requested format; return the exit status.

    Args:
        listed: The changes in included files that were already printed, so that manifests that share a file do not
            repeat them; this call adds more.

    Returns:
        1 if either version is invalid or `fail_on` selects one of the changes.
    """
    from stubwright.diff import printers, sarif

    difference = find_difference(old, new, arguments)
    if difference is None:
        wrong = [version for version in (old, new) if version.manifest is None]
        _write_problem(arguments.format, [(version.diagnostics, version.documents) for version in wrong])
        return 1
    changes, shown = difference.changes, difference.comparison
    if listed is not None:
        shown = replace(shown, repeated=frozenset(listed))
        entries = {old.entry, new.entry}
        listed |= {
            change.key for change in changes if (place := change.new or change.old) and place.file not in entries
        }
    match arguments.format:
        case "json":
            write_out(printers.format_json(changes, shown))
        case "md":
            write_out(printers.format_markdown(changes, shown))
        case "github":
            write_out(printers.format_github(changes, shown, failing=difference.failing))
        case "sarif":
            write_out(sarif.render([sarif.Run(changes, shown, difference.failing)]))
        case _:
            print_text(replace(difference, comparison=shown))
    return difference.find_status()


def print_text(difference: Difference) -> None:
    """Print the changes in the `text` format."""
    from stubwright.diff import printers

    changes, shown = difference.changes, difference.comparison
    print_painted(lambda color: printers.format_text(changes, shown, color=color), sys.stdout)


@dataclass(frozen=True, slots=True)
class Difference:
    """The changes between two versions.

    Attributes:
        comparison: The names of the old and the new version, as printed.
        failing: The impacts that cause exit status 1.
        is_strict: True if `failing` includes changed wording because another program wrote it.
    """

    changes: Sequence[Change]
    comparison: Comparison
    failing: frozenset[Impact]
    is_strict: bool = False

    def find_status(self) -> int:
        """Return the exit status. Write a note if the status is 1 only because wording changed."""
        worst = {change.impact for change in self.changes if not change.ignored} & self.failing
        if self.is_strict and worst == {"words"}:
            write_note("text by other authors changed: review it, or ignore it with `--fail-on breaking`")
        return 1 if worst else 0


def find_difference(old: Version, new: Version, arguments: argparse.Namespace) -> Difference | None:
    """Return the changes for the requested targets and impacts, or None after reporting an invalid version."""
    from stubwright.commands.shared import comparison
    from stubwright.diff import compare as comparing
    from stubwright.diff import printers
    from stubwright.diff.changes import CODES
    from stubwright.diff.costs import compare_costs

    if old.manifest is None or new.manifest is None:
        _report_errors([version for version in (old, new) if version.manifest is None])
        return None
    for side in (old, new):
        for note in side.notes:
            write_note(to_one_line(f"{side.name}: {note}"))
    ignored = (new.values.get("diff") or {}).get("ignore") or ()
    for code in ignored:
        if code not in CODES:
            write_note(to_one_line(f"`diff.ignore` of {new.name} lists `{code}`, which is not a change code"))
    sides = old.manifest, new.manifest
    if old.is_listed or new.is_listed:
        formats = new.manifest.formats if old.is_listed else old.manifest.formats
        sides = comparison.make_listed(old.manifest, formats), comparison.make_listed(new.manifest, formats)
    is_listed = old.is_listed or new.is_listed
    changes = comparing.compare(
        *(*sides, (old.values, new.values), (old.entry, new.entry), ignored, arguments.target), on_wire_alone=is_listed
    )
    if is_listed:
        changes = [change for change in changes if change.side == "wire" and change.code not in _UNLISTED]
    if old.is_sorted or new.is_sorted:
        changes = [change for change in changes if (change.code, change.subject) not in _ORDERS]
    shown = printers.Comparison(
        old.name,
        new.name,
        old.documents,
        new.documents,
        _get_version(old),
        _get_version(new),
        compare_costs(*sides),
    )
    failing = frozenset(impact for name in arguments.fail_on or ("breaking",) for impact in _FAILING[name])
    # By default, wording from another program counts, because it has not been reviewed here.
    is_strict = arguments.fail_on is None and any(
        change.impact == "words" and (old.is_foreign(change.old) or new.is_foreign(change.new))
        for change in changes
        if not change.ignored
    )
    return Difference(changes, shown, failing | {"words"} if is_strict else failing, is_strict)


def _get_version(side: Version) -> str:
    """Return the version's `server.version`.

    Return an empty string if the manifest is invalid or a list has no version.
    """
    from stubwright.importers.tools import NO_VERSION

    named = str(side.manifest.server.get("version", "")) if side.manifest else ""
    return "" if side.is_listed and named == NO_VERSION else named


def _find_pairs(arguments: argparse.Namespace) -> list[tuple[Version, Version]]:
    """Return the pairs to compare: OLD and NEW, or each of the project's manifests at a revision and on disk."""
    from stubwright.commands.shared import comparison

    command: Sequence[str] | None = arguments.command
    words = [word for word in (arguments.old, arguments.new) if word is not None]
    if command and len(words) == 1:
        return [(comparison.read(words[0], ""), comparison.list_live(servers.start(command, arguments)))]
    if arguments.env:
        raise UsageError("--env is for a command after `--`")
    if len(words) == 1 and comparison.is_revision(words[0]):
        return comparison.read_project(words[0])
    if command or len(words) != 2:
        raise UsageError("specify OLD and NEW: `stubwright diff OLD NEW`, or `stubwright diff OLD -- COMMAND`")
    return [(comparison.read(words[0], words[1]), comparison.read(words[1], words[0]))]


def _write_problem(
    style: str, groups: Sequence[tuple[Sequence[Diagnostic], Mapping[str, Document]]] = (), problem: str | None = None
) -> None:
    """Print, in a machine-readable format, the reason that versions cannot be compared.

    Args:
        groups: Each version's diagnostics, with the documents that they refer to.
        problem: The reason, if it has no location.
    """
    from stubwright.diagnostics.printers import github, json
    from stubwright.diagnostics.printers.findings import locate
    from stubwright.diff import sarif

    match style:
        case "json":
            rows = [row for diagnostics, documents in groups for row in json.to_value(diagnostics, documents)]
            write_out(json.format_ascii({"problem": problem, "diagnostics": rows}))
        case "github":
            if problem is not None:
                write_out(github.format_command("error", "not compared", problem, None) + "\n")
            for diagnostics, documents in groups:
                write_out(github.render(diagnostics, documents))
        case "sarif":
            findings = [finding for diagnostics, documents in groups for finding in locate(diagnostics, documents)]
            write_out(sarif.render([], [] if problem is None else [(None, problem)], findings))
        case _:
            pass


def _report_errors(versions: Sequence[Version]) -> None:
    from stubwright.diagnostics import printers

    for version in versions:
        write_err(to_one_line(f"stubwright: {version.name} cannot be compared:"))
        print_painted(partial(printers.text.render, version.diagnostics, version.documents), sys.stderr)
