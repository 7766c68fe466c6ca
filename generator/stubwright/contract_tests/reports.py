"""Formats a run's report as text and JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import median
from typing import TYPE_CHECKING, Any, Protocol

from stubwright.contract_tests.checks import CHECKS, Check
from stubwright_runtime.values.terminal import replace_controls, to_one_line

if TYPE_CHECKING:
    from stubwright.contract_tests.probes import Call


class CallWriter(Protocol):
    """Writes command lines that reproduce faults."""

    def write(self, tool: str, arguments: Mapping[str, Any]) -> str:
        """Return the command line for one call."""
        ...

    def write_replay(self, calls: Sequence[Call]) -> str:
        """Return the command line that sends calls over one connection, and waits for the server to exit."""
        ...


@dataclass(frozen=True, slots=True)
class Fault:
    """A failed check, with the smallest call that reproduces it.

    Attributes:
        check: The failed check.
        message: A description of the fault.
        tool: The tool's name. Empty for faults of the server.
        arguments: The call's arguments. None if no call to a listed tool reproduces the fault.
        words: A description of the arguments.
        count: The number of the tool's calls that fail the check.
        calls: The calls that reproduce the fault in sequence, if a single call does not.
    """

    check: Check
    message: str
    tool: str = ""
    arguments: Mapping[str, Any] | None = None
    words: str = ""
    count: int = 1
    calls: Sequence[Call] = ()

    @property
    def is_error(self) -> bool:
        """True if the fault fails a run without `--strict`."""
        return self.check.severity == "error"


@dataclass(slots=True)
class ToolReport:
    """The outcome of one tool's calls.

    Attributes:
        name: The tool's name.
        skipped: The reason, if the tool was not called.
        planned: The number of planned calls.
        valid: The number of calls with valid arguments.
        invalid: The number of calls with invalid arguments.
        refused: The number of calls with valid arguments that the tool rejected, which is allowed.
        limited: The number of calls that a rate limit rejected, and that were therefore not checked.
        asked: The number of calls with valid arguments for which the server requested input from the client.
        seconds: The latency of each call, in seconds.
        largest: The size of the largest response, in bytes.
        ended: The reason, if some planned calls were not made.
    """

    name: str
    skipped: str = ""
    planned: int = 0
    valid: int = 0
    invalid: int = 0
    refused: int = 0
    limited: int = 0
    asked: int = 0
    seconds: list[float] = field(default_factory=list)
    largest: int = 0
    ended: str = ""

    @property
    def calls(self) -> int:
        """The number of calls made."""
        return self.valid + self.invalid


@dataclass(frozen=True, slots=True)
class Report:
    """A run's findings.

    Attributes:
        label: The server's name in messages.
        info: The server's `serverInfo`.
        revision: The negotiated MCP revision.
        seed: The random seed of the run.
        tools: One report per tool.
        faults: The faults, as `sort_faults` sorts them.
        seconds: The duration of the run, in seconds.
        away: The reason, if the server became unreachable during the run.
    """

    label: str
    info: Mapping[str, Any]
    revision: str
    seed: int
    tools: Sequence[ToolReport]
    faults: Sequence[Fault]
    seconds: float
    away: str = ""

    def fails(self, *, strict: bool) -> bool:
        """Return whether a fault is an error or, with `strict`, a warning."""
        return any(fault.is_error or strict for fault in self.faults)


def sort_faults(faults: Sequence[Fault]) -> list[Fault]:
    """Sort faults: errors first, then by tool (the server's own faults first), then by check."""
    order = {check.name: number for number, check in enumerate(CHECKS)}
    return sorted(faults, key=lambda fault: (not fault.is_error, bool(fault.tool), fault.tool, order[fault.check.name]))


def show(report: Report, writer: CallWriter) -> str:
    """Format a report as text."""
    info = report.info
    lines = [f"{info.get('name', '?')} {info.get('version', '')} (MCP {report.revision}), seed {report.seed}", ""]
    width = max((len(tool.name) for tool in report.tools), default=0)
    lines += [f"  {tool.name:<{width}}  {_describe(tool)}" for tool in report.tools]
    lines = [to_one_line(line) if line.strip() else line for line in lines]
    for title, is_error in (("errors", True), ("warnings", False)):
        faults = [fault for fault in report.faults if fault.is_error is is_error]
        if faults:
            lines += ["", title, *(line for fault in faults for line in _show_fault(fault, writer))]
    lines += ["", _summarize(report)]
    return replace_controls("\n".join(lines)) + "\n"


def to_json(report: Report, writer: CallWriter) -> dict[str, Any]:
    """Format a report as JSON."""
    return {
        "server": report.label,
        "info": {key: value for key, value in report.info.items() if key != "instructions"},
        "revision": report.revision,
        "seed": report.seed,
        "seconds": round(report.seconds, 3),
        "away": report.away or None,
        "tools": [
            {
                "name": tool.name,
                "skipped": tool.skipped or None,
                "ended": tool.ended or None,
                "planned": tool.planned,
                "valid": tool.valid,
                "invalid": tool.invalid,
                "refused": tool.refused,
                "limited": tool.limited,
                "asked": tool.asked,
                "medianSeconds": median(tool.seconds) if tool.seconds else None,
                "slowestSeconds": max(tool.seconds, default=None),
                "largestBytes": tool.largest,
            }
            for tool in report.tools
        ],
        "faults": [
            {
                "check": fault.check.name,
                "severity": fault.check.severity,
                "source": fault.check.source,
                "message": fault.message,
                "tool": fault.tool or None,
                "arguments": fault.arguments,
                "tries": fault.words or None,
                "count": fault.count,
                "earlierCalls": [{"tool": call.tool, "arguments": call.arguments} for call in fault.calls[:-1]],
                "call": write_command(fault, writer),
            }
            for fault in report.faults
        ],
    }


def describe_fault(fault: Fault) -> str:
    """Describe a fault in one line, without the call that reproduces it."""
    return f"tool `{fault.tool}`: {fault.message}" if fault.tool else fault.message


def write_command(fault: Fault, writer: CallWriter) -> str | None:
    """Return the command line that reproduces a fault, or None if no call reproduces it."""
    if fault.calls:
        return writer.write_replay(fault.calls)
    return None if fault.arguments is None else writer.write(fault.tool, fault.arguments)


def _show_fault(fault: Fault, writer: CallWriter) -> Iterator[str]:
    more = f" ({fault.count} calls)" if fault.count > 1 else ""
    first, *rest = describe_fault(fault).split("\n")  # the rest are the last lines of the server's log
    yield f"  {fault.check.name}  {to_one_line(first)}{more}"
    yield from (f"    {line}" for line in rest)
    if (command := write_command(fault, writer)) is not None:
        yield f"      {command}"
    yield f"      {fault.check.source}"


def _describe(tool: ToolReport) -> str:
    if tool.skipped:
        return f"skipped: {tool.skipped}"
    beside = [f"{count} {word}" for count, word in ((tool.refused, "refused"), (tool.asked, "with questions")) if count]
    words = f"{_count(tool.calls, 'call')}: {tool.valid} valid"
    words += f" ({', '.join(beside)})" if beside else ""
    words += f", {tool.invalid} invalid"
    if tool.limited:
        be = "was" if tool.limited == 1 else "were"
        words += f"; {_count(tool.limited, 'call')} hit a rate limit and {be} not checked"
    if tool.seconds:
        words += f"; median {_show_seconds(median(tool.seconds))}, slowest {_show_seconds(max(tool.seconds))}"
        words += f", largest response {tool.largest:,} bytes"
    if tool.valid and tool.refused == tool.valid:
        words += "; it rejected all valid arguments, so no result was checked: add an example"
    return f"{words}; {tool.ended}" if tool.ended else words


def _summarize(report: Report) -> str:
    errors = sum(fault.is_error for fault in report.faults)
    counts = [_count(count, word) for count, word in ((errors, "error"), (len(report.faults) - errors, "warning"))]
    tested = [tool for tool in report.tools if not tool.skipped]
    scope = f"{_count(sum(tool.calls for tool in tested), 'call')} of {_count(len(tested), 'tool')}"
    summary = f"{' and '.join(counts)} in {scope} ({report.seconds:.1f} s)"
    checked = sum(tool.calls - tool.limited for tool in tested)
    planned = sum(max(tool.planned, tool.calls) for tool in tested)
    is_thin = checked * 2 < planned
    return f"{summary}; fewer than half of the planned calls were checked" if is_thin else summary


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"


def _show_seconds(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds * 1000:.0f} ms"
