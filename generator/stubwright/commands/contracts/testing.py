"""`stubwright test`: call a server's tools with generated arguments and check the results."""

from __future__ import annotations

import json
import math
import re
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from stubwright import http, paths
from stubwright.commands.client import destinations
from stubwright.commands.contracts.targets import CallLine, make_for_location, make_for_manifest
from stubwright.commands.importing import import_
from stubwright.commands.shared import logins, servers
from stubwright.commands.shared.console import Printer, UsageError, explain, write_err, write_note, write_out
from stubwright.commands.shared.options import CommandParser, declare
from stubwright.contract_tests import BUDGET, CASES, DEADLINE
from stubwright.diagnostics.suggestions import find_nearest
from stubwright.importers.document_reader import DocumentError, SourceError
from stubwright_runtime.values.terminal import to_one_line

if TYPE_CHECKING:
    import argparse
    from collections.abc import Iterator, Mapping, Sequence

    from stubwright.commands.client.destinations import Destination
    from stubwright.commands.contracts.targets import Target
    from stubwright.contract_tests.probes import Call
    from stubwright.contract_tests.reports import Report
    from stubwright.importers.sources import Source
    from stubwright.ir import Tool

_FAULTS: Final = 1
_NO_ANSWER: Final = 3

_EPILOG: Final = """exit status:
  0 no errors, 1 errors (with --strict, also a warning), 2 usage error,
  3 no response from a server, and no errors, 130 interrupted

examples:
  stubwright test specs/weather.yaml
  stubwright test https://example.com/mcp --token "$TOKEN" --tool "search_*"
  stubwright test --allow-writes --junit report.xml -- npx -y @modelcontextprotocol/server-everything
  stubwright test --config .mcp.json
"""


_OPTIONS: Final = f"""
target TARGET?      a manifest, a contract (see `stubwright lock`), or a URL
--config FILE       test each server in this client configuration; runs its commands
--tool GLOB…        test only tools with a matching name; may be repeated
--allow-writes      also call tools without `readOnlyHint: true`, which may change or delete data
--probe CALL        a call whose result shows the server's state, such as `list_items` or `'list_items {{"limit": 5}}'`:
  calls of read-only tools must not change this result
--call CALL…        make only this call, such as `'get_item {{"id": 5}}'`, regardless of the tool's hints; may be
  repeated to make several calls in this order over one connection
--seed N            the seed for generated arguments (default: 0)
--cases N           the number of calls to each tool (default: {CASES})
--deadline TIME     the time limit for a result (default: {DEADLINE:g}s)
--budget TIME       the total time for testing a server (default: {BUDGET:g}s)
--rate N            the maximum number of calls per second, such as 5 or 0.5, for servers with a rate limit (default:
  no limit)
--strict            exit 1 on warnings too
--format text|json  the format of the findings
--junit FILE        also write a JUnit XML report
"""


def add(verbs: Any) -> None:
    """Register the `test` subcommand and its options."""
    test: CommandParser = verbs.add_parser(
        "test",
        _test,
        help="call any server's tools with arguments generated from their schemas, and check the results",
        usage="stubwright test [options] [MANIFEST | CONTRACT | URL]\n"
        "       stubwright test [options] --config FILE\n"
        "       stubwright test [options] -- COMMAND ARGS…",
        epilog=_EPILOG,
    )
    declare(
        test,
        _OPTIONS,
        config=paths.use_slashes,
        probe=_parse_call,
        call=_parse_call,
        seed=(int, 0),
        cases=(_parse_count, CASES),
        deadline=(_parse_duration, DEADLINE),
        budget=(_parse_duration, BUDGET),
        rate=(_parse_rate, math.inf),
        junit=paths.use_slashes,
    )
    destinations.add_options(test)


def _parse_duration(text: str) -> float:
    """Parse a duration such as `10s`. A plain number is in seconds. Raises argparse.ArgumentTypeError."""
    from stubwright_runtime.values.units import parse_duration

    if re.fullmatch(r"[1-9][0-9]{0,6}(ms|s|m|h)", text):
        return parse_duration(text)
    return servers.parse_seconds(text)


def _parse_call(text: str) -> Call:
    """Parse a tool name followed by its arguments as JSON. Raises argparse.ArgumentTypeError."""
    import argparse

    from stubwright.contract_tests.probes import Call

    name, _, written = text.strip().partition(" ")
    try:
        arguments = json.loads(written or "{}")
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"the arguments for `{name}` are not valid JSON: {error}") from None
    if not name or not isinstance(arguments, dict):
        raise argparse.ArgumentTypeError("write a tool name, and its arguments as a JSON object")
    return Call(name, arguments)


def _parse_rate(text: str) -> float:
    return servers.parse_positive(text, "a number of calls per second, such as 5 or 0.5")


def _parse_count(text: str) -> int:
    from stubwright_runtime.server import main

    return main.parse_positive_number(text)


@dataclass(frozen=True, slots=True)
class _Subject:
    """A server to test. Only a manifest's server has a `destination`."""

    label: str
    source: Source
    line: CallLine
    destination: Destination | None = None

    @property
    def examples(self) -> Mapping[str, Sequence[Mapping[str, Any]]]:
        return {
            tool.name: [example.input for example in tool.examples if isinstance(example.input, dict)]
            for tool in self._tools
        }

    @property
    def once(self) -> Mapping[str, Any]:
        return {tool.name: tool.policy["once"] for tool in self._tools if "once" in tool.policy}

    @property
    def _tools(self) -> Sequence[Tool]:
        manifest = None if self.destination is None else self.destination.manifest
        return () if manifest is None else manifest.tools


@dataclass(frozen=True, slots=True)
class _TestRun:
    label: str
    line: CallLine
    report: Report
    hidden: str | None = None


@dataclass(frozen=True, slots=True)
class _SkippedServer:
    label: str
    problem: SourceError


def _test(arguments: argparse.Namespace) -> int:
    if arguments.call and (arguments.probe is not None or arguments.tool):
        raise UsageError("--call makes only these calls: it cannot be combined with --probe or --tool")
    printer = Printer(arguments.format, strict=False)
    try:
        subjects = [*_find_subjects(arguments, printer)]
    except DocumentError as error:
        import_.report_failure(arguments.config or arguments.target, error, "read")
        return _FAULTS
    except SourceError as error:
        from stubwright.commands.contracts.target_lookup import MissingOptionError

        import_.report_failure(arguments.config or arguments.target, error, "tested")
        return _NO_ANSWER if isinstance(error, MissingOptionError) else _FAULTS
    if printer.failed:
        return printer.close()
    tested: list[_TestRun | _SkippedServer] = []
    for subject in subjects:
        tested.append(subject if isinstance(subject, _SkippedServer) else _test_one(subject, arguments, printer))
        if arguments.format == "text":
            _show(tested[-1])
    if arguments.format == "json":
        write_out(json.dumps({"servers": [_to_value(each) for each in tested]}, indent=2, ensure_ascii=False) + "\n")
        for each in tested:
            _explain(each)
    statuses = {_find_status(each, arguments) for each in tested}
    if arguments.junit is not None and not _write_junit(tested, arguments):
        return _FAULTS
    _check_patterns(arguments.tool, tested)
    return next((status for status in (_FAULTS, _NO_ANSWER) if status in statuses), 0)


def _find_subjects(arguments: argparse.Namespace, printer: Printer) -> Iterator[_Subject | _SkippedServer]:
    """Yield the servers on the command line. Report errors in manifests.

    Raises:
        UsageError: The server is missing, or an option does not apply to it.
        SourceError: A contract or a configuration is invalid, or a contract's server cannot be reached.
    """
    if arguments.config is not None:
        if arguments.target is not None or arguments.command is not None or arguments.header or arguments.env:
            raise UsageError("--config specifies the servers: omit TARGET, --header, --token and --env")
        logins.check_configured(arguments)
        yield from _read_configuration(arguments)
        return
    word: str | None = arguments.target
    if word is not None and arguments.command is not None:
        raise UsageError("specify a server, or a command after `--`, but not both")
    if word is not None and not destinations.is_named(word):
        raise UsageError(f"`{word}` is not a manifest, a contract or a URL; put a command after `--`")
    if word is not None and not http.is_url(word) and _is_contract(word):
        target = _find_target(word, arguments)
        if target.source is not None:
            yield _Subject(target.label, target.source, make_for_location(target.location))
            return
        word = target.file
    destination = destinations.find_destination(word, arguments, printer)
    if destination is None:
        return
    if destination.manifest is None:
        from stubwright.commands.contracts.targets import from_source

        target = from_source(destination.source, dict(map(servers.parse_variable, arguments.env)))
        yield _Subject(destination.label, destination.source, make_for_location(target.location))
        return
    if not arguments.mock:  # mocks do not accept `--no-limits`
        destination = replace(destination, command=(*destination.command, "--no-limits"))
    line = make_for_manifest(destination.label, tuple(arguments.scope), is_mock=arguments.mock)
    yield _Subject(destination.label, destination.source, line, destination)


def _is_contract(path: str) -> bool:
    from stubwright.compile.syntax import yamlwriter
    from stubwright.project.files import disk

    try:
        return yamlwriter.is_locked(disk.read_text(Path(path)) or "")
    except OSError:
        return False  # the compiler reports the error


def _find_target(path: str, arguments: argparse.Namespace) -> Target:
    from stubwright.commands.contracts import target_lookup
    from stubwright.importers.contracts import contract
    from stubwright.project.files import disk

    [target] = target_lookup.find_targets([contract.read_contract(path, disk.Disk())], None, arguments)
    if isinstance(target, SourceError):
        raise target
    return target


def _read_configuration(arguments: argparse.Namespace) -> Iterator[_Subject | _SkippedServer]:
    """Yield the servers in a client's configuration, including servers that cannot be reached. Raises SourceError."""
    from stubwright.commands.contracts import configurations

    for name, target in configurations.find_targets(arguments):
        if isinstance(target, SourceError):
            yield _SkippedServer(name, target)
        elif target.source is not None:
            yield _Subject(name, target.source, make_for_location(target.location))


def _test_one(subject: _Subject, arguments: argparse.Namespace, printer: Printer) -> _TestRun | _SkippedServer:
    from stubwright.contract_tests.probes import ProbeError
    from stubwright.contract_tests.runner import Plan, run

    plan = Plan(
        subject.source,
        tuple(arguments.tool),
        arguments.allow_writes,
        arguments.seed,
        arguments.cases,
        arguments.deadline,
        arguments.budget,
        subject.examples,
        arguments.probe,
        arguments.call,
        arguments.rate,
        {} if arguments.mock else subject.once,  # a mock has no policies
    )
    try:
        with printer.show_work(f"testing {subject.label}"):
            report = run(plan)
    except ProbeError as error:
        raise UsageError(f"{'--call' if arguments.call else '--probe'}: {error}") from None
    except SourceError as error:
        return _SkippedServer(subject.label, error)
    hidden = None
    if subject.destination is not None and subject.destination.manifest is not None:
        seen = {tool.name for tool in report.tools}
        names = [tool.name for tool in subject.destination.manifest.tools if tool.name not in seen]
        hidden = destinations.describe_hidden(subject.destination, *names)
    return _TestRun(subject.label, subject.line, report, hidden)


def _show(tested: _TestRun | _SkippedServer) -> None:
    from stubwright.contract_tests import reports

    if isinstance(tested, _TestRun):
        write_out(reports.show(tested.report, tested.line))
    _explain(tested)


def _explain(tested: _TestRun | _SkippedServer) -> None:
    """Print why a report is missing or incomplete."""
    if isinstance(tested, _SkippedServer):
        import_.report_failure(tested.label, tested.problem, "tested")
        return
    if tested.report.away:
        write_err(f"stubwright: the rest was not tested: {tested.report.away}")
    if tested.hidden:
        write_note(tested.hidden)
    if not tested.report.tools:
        write_note(f"{to_one_line(tested.label)} lists no tools for this caller")
    elif all(tool.skipped for tool in tested.report.tools):
        write_note(f"no tool on {to_one_line(tested.label)} was called")


def _check_patterns(patterns: Sequence[str], tested: Sequence[_TestRun | _SkippedServer]) -> None:
    """Raise UsageError if a pattern matches no tool, because the requested tool would go untested."""
    names: list[str] = []
    for each in tested:
        if isinstance(each, _SkippedServer):
            return  # the unreachable server might have a matching tool
        names += [tool.name for tool in each.report.tools]
    for pattern in patterns:
        if not any(fnmatchcase(name, pattern) for name in names):
            near = find_nearest(pattern, names)
            fix = f"did you mean `{near}`?" if near else f"the tools are: {', '.join(names) or 'none'}"
            raise UsageError(to_one_line(f"--tool: no tool matches `{pattern}`; {fix}"))


def _find_status(tested: _TestRun | _SkippedServer, arguments: argparse.Namespace) -> int:
    if isinstance(tested, _SkippedServer):
        return _NO_ANSWER
    if tested.report.fails(strict=arguments.strict):
        return _FAULTS
    return _NO_ANSWER if tested.report.away else 0


def _to_value(tested: _TestRun | _SkippedServer) -> Mapping[str, Any]:
    from stubwright.contract_tests import reports

    if isinstance(tested, _SkippedServer):
        return {"server": tested.label, "problem": str(tested.problem)}
    return {**reports.to_json(tested.report, tested.line), "server": tested.label}


def _write_junit(tested: Sequence[_TestRun | _SkippedServer], arguments: argparse.Namespace) -> bool:
    from stubwright.contract_tests import junit
    from stubwright.project.files import disk

    reports = [(each.report, each.line) for each in tested if isinstance(each, _TestRun)]
    away = {each.label: str(each.problem) for each in tested if isinstance(each, _SkippedServer)}
    try:
        disk.create(Path(arguments.junit), junit.make_document(reports, away, strict=arguments.strict))
    except OSError as error:
        write_err(f"stubwright: {arguments.junit} cannot be written: {explain(error)}")
        return False
    return True
