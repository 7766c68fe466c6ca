"""Formats reports as JUnit XML: one suite per server, with a case for the server and one for each tool."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final
from xml.etree.ElementTree import Element, SubElement, indent, tostring

from stubwright.contract_tests.reports import CallWriter, Fault, Report, describe_fault, write_command

_SERVER: Final = "(server)"
_FORBIDDEN: Final = re.compile("[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]")
"""Characters that XML forbids (XML 1.0, section 2.2)."""


def make_document(reports: Sequence[tuple[Report, CallWriter]], away: Mapping[str, str], *, strict: bool) -> str:
    """Format reports as one JUnit XML document.

    Args:
        reports: The reports, each with the writer for its calls.
        away: The reasons why other servers have no report, keyed by server label.
        strict: Whether warnings fail a case. Otherwise, they are written as the case's output.
    """
    root = Element("testsuites", name="stubwright test")
    for report, writer in reports:
        server = _clean(str(report.info.get("name") or report.label))
        suite = SubElement(root, "testsuite", name=server, time=f"{report.seconds:.3f}")
        skipped = {tool.name: tool.skipped for tool in report.tools}
        for name in dict.fromkeys([_SERVER, *skipped]):
            faults = [fault for fault in report.faults if (fault.tool or _SERVER) == name]
            seconds = sum(sum(tool.seconds) for tool in report.tools if tool.name == name)
            case = SubElement(suite, "testcase", classname=server, name=_clean(name))
            case.set("time", f"{seconds:.3f}")
            _fill(case, faults, skipped.get(name, ""), writer, strict=strict)
        for kind in ("failure", "skipped"):
            count = sum(case.find(kind) is not None for case in suite)
            suite.set("failures" if kind == "failure" else kind, str(count))
        suite.set("tests", str(len(suite)))
    for label, why in away.items():
        suite = SubElement(root, "testsuite", name=_clean(label), tests="1", errors="1")
        case = SubElement(suite, "testcase", classname=_clean(label), name=_SERVER)
        SubElement(case, "error", message=_clean(why))
    indent(root)
    return tostring(root, encoding="unicode", xml_declaration=True) + "\n"


def _fill(case: Element, faults: Sequence[Fault], skipped: str, writer: CallWriter, *, strict: bool) -> None:
    failing = [fault for fault in faults if fault.is_error or strict]
    if failing:
        names = ", ".join(dict.fromkeys(fault.check.name for fault in failing))
        failure = SubElement(case, "failure", message=_clean(names))
        failure.text = _clean("\n\n".join(_describe(fault, writer) for fault in failing))
    elif skipped:
        SubElement(case, "skipped", message=_clean(skipped))
    if warnings := [fault for fault in faults if fault not in failing]:
        SubElement(case, "system-out").text = _clean("\n\n".join(_describe(fault, writer) for fault in warnings))


def _describe(fault: Fault, writer: CallWriter) -> str:
    lines = [f"{fault.check.name}: {describe_fault(fault)}"]
    command = write_command(fault, writer)
    lines += [] if command is None else [command]
    return "\n".join([*lines, fault.check.source])


def _clean(text: str) -> str:
    return _FORBIDDEN.sub("\N{REPLACEMENT CHARACTER}", text)
