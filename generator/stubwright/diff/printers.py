"""Formats changes as text, JSON, Markdown and GitHub annotations."""

from __future__ import annotations

import json as jsons
import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Final, Literal, TypeAlias

from stubwright.diagnostics import Place, Span
from stubwright.diagnostics.printers.findings import locate
from stubwright.diagnostics.printers.github import format_command
from stubwright.diagnostics.printers.json import format_ascii
from stubwright.diff.changes import IMPACTS, Change, Impact, Key, TextChange, name_class, raise_version, suggest_bump
from stubwright_runtime.values.terminal import to_one_line

if TYPE_CHECKING:
    from stubwright.compile.source import Document
    from stubwright.diagnostics import Diagnostic
    from stubwright.diff.costs import CostChange

Level: TypeAlias = Literal["error", "warning", "notice"]

_BOLD, _RED, _YELLOW, _GREEN, _DIM, _PLAIN = "\x1b[1m", "\x1b[1;31m", "\x1b[1;33m", "\x1b[32m", "\x1b[2m", "\x1b[0m"
_COLOURS: Final = {"breaking": _RED, "may break": _YELLOW, "words": _YELLOW, "compatible": _GREEN, "cosmetic": _DIM}
_HEADINGS: Final = {"words": "words that models read"}
_HARMLESS: Final = frozenset({"compatible", "cosmetic"})
_COUNTED: Final = {"words": "in words"}
_MARKED: Final = re.compile(r"[\\*_\[\]<>|~&#@]")
_LINKED: Final = re.compile(r"(?<=[@#])(?=\w)|(?<=:)(?=//)|(?<=\bwww)(?=\.)", re.IGNORECASE)
"""Positions at which to break mentions, references and bare links, which GitHub detects in text without entities."""

_CODE: Final = re.compile(r"`([^`]*)`")
_AROUND: Final = 40
"""The number of unchanged characters to show on each side of a change."""

_LONGEST: Final = 2000
"""The maximum number of changed characters to show, except in JSON."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """The two manifests in a report.

    Attributes:
        old: The old manifest's name in the report.
        new: The new manifest's name in the report.
        old_documents: The old manifest's parsed files, by path.
        new_documents: The new manifest's parsed files, by path.
        old_version: The old server version.
        new_version: The new server version.
        costs: The change in token costs. None if unknown.
        repeated: The keys of changes that an earlier report in the same run lists.
    """

    old: str
    new: str
    old_documents: Mapping[str, Document]
    new_documents: Mapping[str, Document]
    old_version: str
    new_version: str
    costs: CostChange | None = None
    repeated: Collection[Key] = ()

    def list_new(self, changes: Sequence[Change]) -> list[Change]:
        """Return the changes that no earlier report lists."""
        return [change for change in changes if change.key not in self.repeated]

    def describe_repeated(self, changes: Sequence[Change]) -> str:
        """Return a line that counts the changes in an earlier report, or an empty string if there are none."""
        repeated = [change for change in changes if change.key in self.repeated and not change.ignored]
        files = sorted({place.file for change in repeated if (place := change.new or change.old)})
        count = "1 change" if len(repeated) == 1 else f"{len(repeated)} changes"
        return f"{count} in {', '.join(files)}: see above" if repeated else ""

    def find_places(self, change: Change) -> tuple[Span | None, Span | None]:
        """Return a change's spans in the old and new manifests."""
        return _find_span(change.old, self.old_documents), _find_span(change.new, self.new_documents)

    def suggest_version(self, changes: Sequence[Change]) -> tuple[str | None, str | None]:
        """Return the version part to bump and the new version, if any."""
        part = suggest_bump(changes, self.old_version)
        return (part, raise_version(self.old_version, part)) if part else (None, None)


def format_text(changes: Sequence[Change], comparison: Comparison, *, color: bool) -> str:
    """Format changes as text, grouped by impact, each with location and reason, followed by a summary."""

    def paint(words: str, colour: str) -> str:
        return f"{colour}{words}{_PLAIN}" if color else words

    lines = []
    for impact, title, group in _classify(comparison.list_new(changes)):
        lines.append(paint(_HEADINGS.get(title, title), _COLOURS[impact]))
        for change in group:
            subject = paint(to_one_line(change.subject), _BOLD)
            lines.append(f"  {change.code} {change.side:<6}  {subject}: {to_one_line(change.message)}")
            lines += [f"                 {line}" for line in _list_details(change, comparison)]
        lines.append("")
    if repeated := comparison.describe_repeated(changes):
        lines += [to_one_line(repeated), ""]
    if costs := _list_costs(comparison):
        lines += [*costs, ""]
    lines.append(to_one_line(_summarize(changes, comparison)))
    return "\n".join(lines) + "\n"


def format_json(changes: Sequence[Change], comparison: Comparison) -> str:
    """Format changes as JSON, with a count per impact and the suggested version."""
    return format_ascii(to_value(changes, comparison))


def to_value(changes: Sequence[Change], comparison: Comparison) -> dict[str, Any]:
    """Return the JSON value that `format_json` formats."""
    part, version = comparison.suggest_version(changes)
    rows = []
    for change in changes:
        old, new = comparison.find_places(change)
        rows.append(
            {
                "code": change.code,
                "side": change.side,
                "impact": change.impact,
                "ignored": change.ignored,
                "subject": change.subject,
                "message": change.message,
                "help": change.help,
                "old": _to_json(old),
                "new": _to_json(new),
                **({"target": change.target} if change.target else {}),
                **({"equal": True} if change.is_equal else {}),
                **({"words": {"old": change.words.old, "new": change.words.new}} if change.words else {}),
            }
        )
    return {
        "old": comparison.old,
        "new": comparison.new,
        "counts": _count_impacts(changes),
        "ignored": sum(change.ignored for change in changes),
        "bump": part,
        "version": version,
        **({} if comparison.costs is None else {"cost": asdict(comparison.costs)}),
        "changes": rows,
    }


def format_github(changes: Sequence[Change], comparison: Comparison, *, failing: Collection[Impact]) -> str:
    """Format changes as GitHub workflow commands at their locations in the new or old manifest. Omits ignored changes.

    Args:
        changes: The changes to report.
        comparison: The compared manifests.
        failing: The impacts that are errors. Other impacts are warnings, or notices if they are harmless.
    """
    lines = []
    for change in comparison.list_new(changes):
        if change.ignored:
            continue
        level = grade(change, failing)
        old, new = comparison.find_places(change)
        message = "\n".join((f"{change.subject}: {change.message}", *explain(change)))
        title = f"{change.code} {name_class(change.impact, change.target)}"
        lines.append(format_command(level, title, message, new or old))
    if costs := _list_costs(comparison):
        lines.append(format_command("notice", "cost", "\n".join(costs), None))
    return "".join(f"{line}\n" for line in lines)


def grade(change: Change, failing: Collection[Impact]) -> Level:
    """Return a change's level: error if its impact fails the run, notice if it is harmless, warning otherwise."""
    return "error" if change.impact in failing else "notice" if change.impact in _HARMLESS else "warning"


def format_markdown(changes: Sequence[Change], comparison: Comparison) -> str:
    """Format changes as Markdown for pull requests: a table for each impact, with harmless changes collapsed."""
    lines = [f"**{escape(_summarize(changes, comparison))}**"]
    if repeated := comparison.describe_repeated(changes):
        lines += ["", escape(repeated)]
    for impact, named, group in _classify(comparison.list_new(changes)):
        folded = impact in _HARMLESS
        title = f"{_HEADINGS.get(named, named)} ({len(group)})"
        lines += ["", f"<details><summary>{title}</summary>" if folded else f"### {title.capitalize()}", ""]
        lines += ["| code | side | what | change | where |", "|---|---|---|---|---|"]
        for change in group:
            old, new = comparison.find_places(change)
            why = "".join(f"<br>{escape(line)}" for line in explain(change))
            where = " ← ".join(escape(_show_span(span)) for span in (new, old) if span)
            cells = (change.code, change.side, escape(change.subject), f"{escape(change.message)}{why}", where)
            lines.append(f"| {' | '.join(cells)} |")
        if folded:
            lines += ["", "</details>"]
    if costs := _list_costs(comparison):
        tools = [f"- {escape(tool.lstrip())}" for tool in costs[1:]]
        lines += ["", f"<details><summary>{escape(costs[0])}</summary>", "", *tools, "", "</details>"]
    return "\n".join(lines) + "\n"


def format_findings(diagnostics: Sequence[Diagnostic], documents: Mapping[str, Document]) -> str:
    """Format the diagnostics of a file that cannot be compared as a Markdown list. Return an empty string if there are
    none.
    """
    lines = []
    for finding in locate(diagnostics, documents):
        diagnostic = finding.diagnostic
        where = f"{escape(_show_span(finding.span))}: " if finding.span else ""
        fix = f"<br>help: {escape(diagnostic.help)}" if diagnostic.help else ""
        lines.append(f"- {where}{diagnostic.severity} {diagnostic.code}: {escape(diagnostic.message)}{fix}")
    return "\n".join(["", *lines, ""]) if lines else ""


def _classify(changes: Sequence[Change]) -> Iterator[tuple[Impact, str, list[Change]]]:
    """Yield the changes that are not ignored, grouped by impact. Changes that affect one target come last."""
    for impact in IMPACTS:
        counted = [change for change in changes if change.impact == impact and not change.ignored]
        for target in sorted({change.target for change in counted}, key=lambda name: name or ""):
            yield impact, name_class(impact, target), [change for change in counted if change.target == target]


def _list_details(change: Change, comparison: Comparison) -> list[str]:
    old, new = comparison.find_places(change)
    lines = []
    if old and new:
        lines.append(f"at {_show_span(new)}, was at {_show_span(old)}")
    elif old or new:
        lines.append(f"at {_show_span(new)}" if new else f"was at {_show_span(old)}" if old else "")
    return [*lines, *map(to_one_line, explain(change))]


def explain(change: Change) -> Iterator[str]:
    """Yield lines with the reason for a change's impact, then the old and new text."""
    if change.help:
        yield change.help
    if change.words:
        old, new = _cut(change.words)
        yield f"was: {old}"
        yield f"now: {new}"


def _cut(words: TextChange) -> tuple[str, str]:
    """Format the old and new text as one-line JSON. Shorten the parts that are equal."""
    old, new = (
        "nothing" if value is None else jsons.dumps(value, ensure_ascii=False) for value in (words.old, words.new)
    )
    start = _count_shared(old, new)
    end = _count_shared(old[start:][::-1], new[start:][::-1])
    start, end = max(start - _AROUND, 0), max(end - _AROUND, 0)
    return _cut_out(old, start, end), _cut_out(new, start, end)


def _count_shared(left: str, right: str) -> int:
    pairs = enumerate(zip(left, right, strict=False))
    return next((at for at, (mine, other) in pairs if mine != other), min(len(left), len(right)))


def _cut_out(text: str, start: int, end: int) -> str:
    part = text[start : len(text) - end]
    more = f"… and {len(part) - _LONGEST} more characters" if len(part) > _LONGEST else ""
    return f"{'…' if start else ''}{part[:_LONGEST]}{more}{'…' if end and not more else ''}"


def _summarize(changes: Sequence[Change], comparison: Comparison) -> str:
    counts = [f"{len(group)} {_COUNTED.get(title, title)}" for _, title, group in _classify(changes)]
    ignored = sum(change.ignored for change in changes)
    if ignored:
        counts.append(f"{ignored} ignored")
    summary = ", ".join(counts) or "nothing changed"
    part, version = comparison.suggest_version(changes)
    if part is None:
        return f"{summary} from {comparison.old} to {comparison.new}"
    suggested = f"{part} version" + (f", {comparison.old_version} → {version}" if version else "")
    mismatch = f" (the manifest has {comparison.new_version})" if version and comparison.new_version != version else ""
    return f"{summary} from {comparison.old} to {comparison.new}; suggested: a {suggested}{mismatch}"


def _list_costs(comparison: Comparison) -> list[str]:
    """Return a line about the additional tokens and a line for each tool, or nothing if the cost is unchanged."""
    costs = comparison.costs
    if costs is None or not (costs.difference or costs.tools):
        return []
    lines = [f"cost: {costs.difference:+,} {costs.unit}; now {costs.new:,}"]
    for tool in costs.tools:
        state = " (new)" if tool.old is None else " (removed)" if tool.new is None else f"; now {tool.new:,}"
        lines.append(f"  {tool.difference:+,}  tool `{tool.name}`{state}")
    return [*map(to_one_line, lines)]


def _count_impacts(changes: Sequence[Change]) -> dict[str, int]:
    return {impact: sum(change.impact == impact and not change.ignored for change in changes) for impact in IMPACTS}


def _find_span(place: Place | None, documents: Mapping[str, Document]) -> Span | None:
    if place is None:
        return None
    document = documents.get(place.file)
    return document.find_span(place) if document is not None else None


def _show_span(span: Span | None) -> str:
    return f"{to_one_line(span.file)}:{span.line}:{span.column}" if span else ""


def _to_json(span: Span | None) -> Any:
    if span is None:
        return None
    return {
        "file": span.file,
        "line": span.line,
        "column": span.column,
        "endLine": span.end_line,
        "endColumn": span.end_column,
    }


def escape(words: str) -> str:
    """Escape text for Markdown, except backticks, which become code.

    Every Markdown or HTML special character becomes an entity. A word joiner (U+2060) prevents GitHub's mentions and
    links.
    """
    text = _LINKED.sub("\u2060", to_one_line(words))
    plain = _MARKED.sub(lambda match: f"&#{ord(match[0])};", text).replace("\u2060", "&#8288;")
    return _CODE.sub(r"<code>\1</code>", plain).replace("`", "&#96;")
