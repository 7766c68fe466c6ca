"""Runs contract tests against one server.

A call that crashes the server or gets no response is a fault: the server is restarted, and the run continues.
"""

from __future__ import annotations

import math
import re
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from fnmatch import fnmatchcase
from typing import TYPE_CHECKING, Any, Final

import anyio

from stubwright.contract_tests import BUDGET, CASES, DEADLINE, checks, protocol
from stubwright.contract_tests.answer_checks import check_answer, is_rejection
from stubwright.contract_tests.answers import (
    Answer,
    Disconnect,
    ProtocolError,
    RateLimitRefusal,
    Result,
    Timeout,
    find_limit,
)
from stubwright.contract_tests.cases import Arguments, Case
from stubwright.contract_tests.checks import Check, Finding
from stubwright.contract_tests.crashes import MOMENT, Crashes
from stubwright.contract_tests.links import Linker, Links, order
from stubwright.contract_tests.probes import Call, Probe, ProbeError
from stubwright.contract_tests.reports import Fault, Report, ToolReport, sort_faults
from stubwright.contract_tests.session import BudgetError, Session
from stubwright.contract_tests.shrinking import minimize
from stubwright.diagnostics.suggestions import did_you_mean
from stubwright.importers.document_reader import SourceError
from stubwright.importers.live import UnreachableError, interrupt_on_signals, silence_libraries
from stubwright.jsonschema import dialects, metaschema
from stubwright.jsonschema.instances import UnsatisfiableError
from stubwright_runtime.schema.validation import Validator
from stubwright_runtime.values.terminal import to_one_line

if TYPE_CHECKING:
    from stubwright.importers.sources import Source

_TRIES: Final = 100
"""The maximum number of calls made to shrink a failing call."""

_COSTLY_TRIES: Final = 8
"""The maximum number of calls made to shrink a call that gets no response within the deadline."""

_ABOUT_ARGUMENTS: Final = (checks.SAYS_WHAT, checks.TOOL_ERROR)
"""Checks that apply only to errors about the arguments."""

_LOST: Final = 3
"""The number of calls without a response after which a tool is skipped."""


@dataclass(frozen=True, slots=True)
class Plan:
    """The tools to call, and the run's limits.

    Attributes:
        source: The server to test.
        tools: Globs for tool names. If empty, test all tools.
        allows_writes: Whether to call tools without `readOnlyHint: true`.
        seed: The random seed for generated arguments.
        cases: The number of calls per tool.
        deadline: The time limit for each response, in seconds.
        budget: The time limit for all calls, in seconds.
        examples: Examples from the manifest, keyed by tool name.
        probe: A call that returns the server's state, or None to skip the checks of hints.
        calls: The only calls to make, over one connection. If empty, generate calls.
        rate: The maximum number of requests per second.
        once: The `policy.once` of tools in the manifest, keyed by tool name.
    """

    source: Source
    tools: Sequence[str] = ()
    allows_writes: bool = False
    seed: int = 0
    cases: int = CASES
    deadline: float = DEADLINE
    budget: float = BUDGET
    examples: Mapping[str, Sequence[Mapping[str, Any]]] = field(default_factory=dict)
    probe: Call | None = None
    calls: Sequence[Call] = ()
    rate: float = math.inf
    once: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)


def run(plan: Plan) -> Report:
    """Test a server and report the faults.

    Raises:
        UnreachableError: The server is unavailable or does not list its tools.
        ProbeError: The probe is unusable, or a call's tool does not exist.
    """
    with silence_libraries(), interrupt_on_signals():
        return anyio.run(_run, plan)


async def _run(plan: Plan) -> Report:
    failures: list[SourceError] = []
    reports: list[Report] = []
    async with anyio.create_task_group() as tasks:
        session = Session(plan.source, plan.deadline, tasks, plan.rate)
        try:
            reports.append(await _Run(plan, session).test())
        except (UnreachableError, ProbeError) as error:
            failures.append(error)
        finally:
            await session.disconnect()
    if failures:
        raise failures[0]
    return reports[0]


class _Run:
    def __init__(self, plan: Plan, session: Session) -> None:
        self._plan = plan
        self._session = session
        self._start = time.monotonic()
        self._end = self._start + plan.budget
        self._faults: list[Fault] = []
        self._probe: Probe | None = None
        self._crashes = Crashes(session)
        self._links = Links()

    async def test(self) -> Report:
        """Run all tests. Raises UnreachableError if the server is unavailable at the start."""
        session = self._session
        connection = await session.connect()
        listed = [tool for tool in await session.list_tools() if isinstance(tool, dict)]
        self._start = time.monotonic()  # a package manager might have fetched the server first
        self._end = session.end = self._start + self._plan.budget
        self._revision = connection.revision
        if session.unreadable:
            self._add(Finding(checks.MESSAGES_ONLY, f"{_count_strays(session.unreadable)} before the first call"))
        await self._start_probe(listed)
        self._faults += [fault for fault in protocol.check_list(listed, connection) if self._counts(fault.check)]
        reports = [ToolReport(str(tool.get("name")), self._find_obstacle(tool)) for tool in listed]
        away = ""
        try:
            if self._plan.calls:
                await self._replay(listed, reports)
            else:
                await self._test_everything(listed, reports)
        except UnreachableError as error:
            away = str(error)
        except BudgetError:
            for report in reports:
                if not report.skipped and not report.ended and report.calls < max(report.planned, 1):
                    report.ended = _end_by_budget(report)
        seconds = time.monotonic() - self._start
        label = self._plan.source.label
        faults = sort_faults([*self._faults, *self._crashes.faults])
        return Report(label, connection.info, self._revision, self._plan.seed, reports, faults, seconds, away)

    async def _test_everything(self, listed: Sequence[Mapping[str, Any]], reports: Sequence[ToolReport]) -> None:
        if not listed and "tools" not in (await self._session.connect()).capabilities:
            return
        async for fault in protocol.check_requests(self._session, listed):
            if self._counts(fault.check):
                self._faults.append(fault)
        self._session.pop_loss()
        await self._test_tools(listed, reports)

    async def _replay(self, listed: Sequence[Mapping[str, Any]], reports: Sequence[ToolReport]) -> None:
        """Make the calls in `Plan.calls`, then wait for the server to exit. Raises ProbeError if a tool is missing."""
        tools = {str(tool.get("name")): (tool, report) for tool, report in zip(listed, reports, strict=True)}
        calls = self._plan.calls
        for call in calls:
            if call.tool not in tools:
                raise ProbeError(_describe_missing(call.tool, listed))
        for name, (_, report) in tools.items():
            report.planned = sum(call.tool == name for call in calls)
            report.skipped = "" if report.planned else "no --call names it"
        await self._session.disconnect()
        gone: Answer | None = None
        made: list[Call] = []
        for call in calls:
            tool, report = tools[call.tool]
            made.append(call)
            if isinstance(gone := await self._replay_one(tool, report, call), Disconnect):
                break
        else:
            gone = await self._session.outlast(MOMENT)
        if isinstance(gone, Disconnect):
            self._faults.append(Fault(checks.SURVIVES, f"the server {gone.why}", call.tool, call.arguments, calls=made))

    async def _replay_one(self, tool: Mapping[str, Any], report: ToolReport, call: Call) -> Answer:
        case = Arguments(tool.get("inputSchema")).classify(dict(call.arguments), "") or Case(call.arguments, True, "")
        output = Validator(tool["outputSchema"]) if "outputSchema" in tool else None
        answer = await self._session.call(tool, call.arguments)
        self._session.pop_loss()
        _count(report, case, answer, self._revision)
        self._faults += [
            Fault(finding.check, finding.message, call.tool, call.arguments)
            for finding in check_answer(case, answer, output, self._revision)
        ]
        return answer

    async def _start_probe(self, listed: Sequence[Mapping[str, Any]]) -> None:
        """Read the server's state before the first call. Raises ProbeError."""
        call = self._plan.probe
        if call is None:
            return
        tool = next((tool for tool in listed if tool.get("name") == call.tool), None)
        if tool is None:
            raise ProbeError(_describe_missing(call.tool, listed))
        self._probe = Probe(self._session, call, tool)
        try:
            await self._probe.start()
        except BudgetError:
            raise ProbeError(f"the --budget time was used up before `{call.tool}` responded twice") from None

    def _counts(self, check: Check) -> bool:
        return check.since <= self._revision

    def _add(self, finding: Finding) -> None:
        self._faults.append(Fault(finding.check, finding.message))

    def _find_obstacle(self, tool: Mapping[str, Any]) -> str:
        globs = self._plan.tools
        if globs and not any(fnmatchcase(str(tool.get("name")), glob) for glob in globs):
            return "no --tool names it"
        annotations = tool.get("annotations")
        is_read_only = isinstance(annotations, dict) and annotations.get("readOnlyHint") is True
        if not is_read_only and not self._plan.allows_writes:
            return "it does not declare `readOnlyHint: true`; add --allow-writes to call it"
        execution = tool.get("execution")
        if isinstance(execution, dict) and execution.get("taskSupport") == "required":
            return "it only runs as a task"
        return ""

    async def _test_tools(self, listed: Sequence[Mapping[str, Any]], reports: Sequence[ToolReport]) -> None:
        waiting = [(tool, report) for tool, report in zip(listed, reports, strict=True) if not report.skipped]
        waiting.sort(key=lambda each: order(each[0]))
        answered: tuple[Mapping[str, Any], Case] | None = None
        for number, (tool, report) in enumerate(waiting):
            # Share the remaining time equally, so that later tools get the time left over by quick ones.
            share = (self._end - time.monotonic()) / (len(waiting) - number)
            tested = await self._test_tool(tool, report, time.monotonic() + share)
            if answered is None and tested is not None and not self._crashes.has_blamed(report.name):
                answered = tool, tested
        if answered is not None:
            for check in (protocol.check_concurrent, protocol.check_cancelled):
                fault = await check(self._session, *answered)
                if fault is not None and self._session.has_loss:
                    # An earlier call could have crashed the server, so repeat the check with a fresh one.
                    loss = self._session.pop_loss()
                    await self._session.disconnect()
                    fault = await check(self._session, *answered)
                    if fault is not None:
                        self._session.pop_loss()
                    elif loss is not None:
                        await self._crashes.explain_loss(loss)
                self._faults += [] if fault is None else [fault]
                await self._crashes.explain()
        await self._crashes.explain_late()

    async def _test_tool(self, tool: Mapping[str, Any], report: ToolReport, end: float) -> Case | None:
        """Test a tool until `end`. Return valid arguments whose response had no faults, or None."""
        plan = self._plan
        try:
            arguments = Arguments(tool.get("inputSchema"))
            output = Validator(tool["outputSchema"]) if "outputSchema" in tool else None
        except ValueError as error:
            report.skipped = f"one of its schemas is unusable: {to_one_line(str(error).splitlines()[0])}"
            self._faults += [
                Fault(checks.VALID_SCHEMA, f"its `{key}` is not a valid JSON Schema", report.name)
                for key in ("inputSchema", "outputSchema")
                if (key in tool or key == "inputSchema") and not _is_schema(tool.get(key))
            ]
            return None
        examples = [*plan.examples.get(report.name, ()), *_find_examples(tool)]
        try:
            cases = arguments.make_cases(examples, f"{plan.seed}/{report.name}", plan.cases)
        except UnsatisfiableError as error:
            report.skipped = f"no valid arguments could be generated: {error}"
            return None
        report.planned = len(cases)
        valid = next((case for case in cases if case.is_valid), None)
        tester = _Tester(self._session, tool, arguments, output, self._revision, valid, self._probe)
        linker = Linker(self._links, tool, arguments, f"{plan.seed}/{report.name}")
        answered: Case | None = None
        try:
            for planned in cases:
                case = linker.link(planned)
                if case is None:
                    report.planned -= 1
                    continue
                if time.monotonic() >= end and report.calls:
                    report.ended = _end_by_budget(report)
                    break
                answer = await tester.test(case)
                _count(report, case, answer, self._revision)
                if isinstance(answer, Result):
                    self._links.learn(report.name, answer)
                tester.lost += await self._crashes.explain(case.words) in (report.name, "")
                if isinstance(answer, RateLimitRefusal):
                    if answer.seconds > end - time.monotonic():
                        report.ended = f"{report.planned - report.calls} not made, because of a rate limit"
                        break
                    await anyio.sleep(answer.seconds)
                if case.is_valid and answered is None and isinstance(answer, Result) and not tester.has_failed(case):
                    answered = case
                if tester.lost >= _LOST and report.calls < report.planned:
                    report.ended = f"{report.planned - report.calls} not made, after {_LOST} without a response"
                    break
            await tester.shrink_all(self._end)
            if answered is not None and (once := plan.once.get(report.name)) is not None:
                fault = await protocol.check_once(self._session, tool, once, [answered, *cases])
                self._faults += [] if fault is None else [fault]
            await self._crashes.explain()
        finally:
            self._faults += tester.faults  # even if the server has become unreachable
        return answered


class _Tester:
    """Calls one tool and records the first call that fails each check."""

    def __init__(
        self,
        session: Session,
        tool: Mapping[str, Any],
        arguments: Arguments,
        output: Validator | None,
        revision: str,
        valid: Case | None,
        probe: Probe | None,
    ) -> None:
        self._session = session
        self._tool = tool
        self._arguments = arguments
        self._output = output
        self._revision = revision
        self._valid = valid
        self._probe = probe
        self._broken: dict[Check, tuple[Case, Fault]] = {}
        self._failed: set[int] = set()
        self.lost = 0

    @property
    def faults(self) -> Iterable[Fault]:
        return [fault for _, fault in self._broken.values()]

    def has_failed(self, case: Case) -> bool:
        return id(case) in self._failed

    async def test(self, case: Case) -> Answer:
        answer, findings = await self._try(case)
        self.lost += isinstance(answer, Timeout)
        if findings:
            self._failed.add(id(case))
        for check, finding in {finding.check: finding for finding in findings}.items():
            if check in self._broken:
                first, fault = self._broken[check]
                self._broken[check] = first, replace(fault, count=fault.count + 1)
            else:
                self._broken[check] = case, self._make_fault(case, finding)
        return answer

    def _make_fault(self, case: Case, finding: Finding, count: int = 1) -> Fault:
        return Fault(finding.check, finding.message, str(self._tool["name"]), case.arguments, case.words, count)

    async def _try(self, case: Case) -> tuple[Answer, list[Finding]]:
        before = self._session.unreadable
        answer = await self._session.call(self._tool, case.arguments)
        if (limited := find_limit(answer)) is not None:
            return limited, []
        findings = [*check_answer(case, answer, self._output, self._revision)]
        if any(finding.check in _ABOUT_ARGUMENTS for finding in findings) and await self._is_general(case, answer):
            findings = [finding for finding in findings if finding.check not in _ABOUT_ARGUMENTS]
        if self._probe is not None and case.is_valid and isinstance(answer, Result) and not answer.is_error:
            findings += await self._probe.check(self._tool, case)
        if strays := self._session.unreadable - before:
            findings.append(Finding(checks.MESSAGES_ONLY, f"{_count_strays(strays)} during the call"))
        return answer, findings

    async def _is_general(self, case: Case, answer: Answer) -> bool:
        """Return whether the tool rejects corrected arguments for the same reason, so that the error has another cause.

        The reason is the same if the messages are equal, or if both mention the same other argument. Only the invalid
        argument is corrected, so messages about other arguments do not change.
        """
        valid = self._arguments.repair(case) or self._valid
        if valid is None:
            return False
        other = await self._session.call(self._tool, valid.arguments)
        words, later = _find_words(answer), _find_words(other)
        names = {name for name in case.arguments if name not in case.about}
        return bool(words) and (
            words == later or any(_mentions_name(words, name) and _mentions_name(later, name) for name in names)
        )

    async def shrink_all(self, end: float) -> None:
        with suppress(BudgetError):  # report the failing calls without shrinking
            for check in [*self._broken]:
                await self._shrink(check, end)

    async def _shrink(self, check: Check, end: float) -> None:
        case, fault = self._broken[check]

        async def fails(smaller: Case) -> bool:
            if time.monotonic() >= end:
                raise BudgetError
            _, findings = await self._try(smaller)
            finding = next((finding for finding in findings if finding.check is check), None)
            if finding is not None:
                self._broken[check] = smaller, self._make_fault(smaller, finding, fault.count)
            return finding is not None

        await minimize(case, self._arguments, _COSTLY_TRIES if check is checks.IN_TIME else _TRIES, fails)


def _describe_missing(name: str, listed: Sequence[Mapping[str, Any]]) -> str:
    names = [str(tool.get("name")) for tool in listed]
    return f"there is no tool `{name}`; {did_you_mean(name, names, 'tools')}"


def _count(report: ToolReport, case: Case, answer: Answer, revision: str) -> None:
    report.limited += isinstance(answer, RateLimitRefusal)
    report.valid += case.is_valid
    report.invalid += not case.is_valid
    if not isinstance(answer, Timeout | Disconnect | RateLimitRefusal):
        report.seconds.append(answer.seconds)
    if isinstance(answer, Result):
        report.largest = max(report.largest, answer.size)
    report.refused += case.is_valid and is_rejection(answer, revision)
    if isinstance(answer, Result | ProtocolError):
        report.asked += case.is_valid and answer.is_question


def _end_by_budget(report: ToolReport) -> str:
    return f"{max(report.planned, 1) - report.calls} not made, because the --budget time was used up"


def _is_schema(value: Any) -> bool:
    """Return whether a value is a valid schema in its dialect. The schema can reference other documents."""
    return isinstance(value, dict) and metaschema.is_valid(
        value, dialects.find_dialect(value) or dialects.DRAFT_2020_12
    )


def _mentions_name(words: str, name: str) -> bool:
    return re.search(rf"(?<!\w){re.escape(name)}(?!\w)", words) is not None


def _find_words(answer: Answer) -> str:
    """Return the words in an error, without numbers. Return an empty string for other responses."""
    match answer:
        case ProtocolError():
            text = answer.message
        case Result() if answer.is_error:
            text = answer.text
        case _:
            text = ""
    # Numbers in an error, such as the seconds until a rate limit resets, differ from call to call.
    return "".join(character for character in text if not character.isdigit())


def _count_strays(number: int) -> str:
    return "a line that is not JSON-RPC" if number == 1 else f"{number} lines that are not JSON-RPC"


def _find_examples(tool: Mapping[str, Any]) -> Sequence[Mapping[str, Any]]:
    schema = tool.get("inputSchema")
    examples = schema.get("examples") if isinstance(schema, dict) else None
    return [example for example in examples if isinstance(example, dict)] if isinstance(examples, list) else []
