"""Checks tools against the manifest's targets.

A manifest without targets is checked against the portable target and only gets warnings.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Final

from stubwright import targets
from stubwright.diagnostics import Diagnostic, Place
from stubwright.diagnostics.suggestions import did_you_mean

if TYPE_CHECKING:
    from collections.abc import Container, Mapping, Sequence

    from stubwright import ir
    from stubwright.diagnostics import Pointer
    from stubwright.targets import Finding

_NAMES: Final = frozenset({"name", "long name"})
_PROPERTIES: Final = frozenset({"property", "root property"})
_BOUNDS: Final = frozenset(
    {"tools", "description", "optional properties", "unions", "levels", "properties", "characters", "enum values"}
    | {"large enum"}
)
PROJECTED: Final = frozenset({"openai-strict", "anthropic-strict"})
"""Targets that reject most tools as written; `stubwright export` fixes most findings."""

_MCP_NAME: Final = re.compile(r"[A-Za-z0-9_.-]{1,128}")


def check(manifest: ir.Manifest, file: str, part: Container[str], chosen: Sequence[str] = ()) -> list[Diagnostic]:
    """Return a diagnostic for each definition that one of the manifest's targets rejects.

    Args:
        file: The path of the entry file.
        part: Names of the tools to check.
        chosen: Targets that replace the manifest's own.
    """
    names = targets.TARGETS.expand(chosen or manifest.targets)
    if not names and "server" not in manifest.emit:
        return []  # users cannot change an imported server
    unknown = [name for name in names if name not in targets.TARGETS]
    if unknown:
        return [_report_unknown(name, manifest, file) for name in unknown]
    tools = targets.make_list((tool.listed for tool in manifest.tools), str(manifest.server["name"]))
    checked = [tool for tool in tools if tool.name in part]
    by_name = {tool.name: tool for tool in manifest.tools}
    shared = {shared.name: shared.schema.place for shared in manifest.shared}
    diagnostics = [
        finding
        for name in names or (targets.PORTABLE,)
        for finding in targets.find_violations(tools, targets.TARGETS[name], checked)
        if not _breaks_mcp_rule(finding)
    ]
    name_findings = {
        (finding.target.name, finding.tool): finding for finding in reversed(diagnostics) if _is_name(finding)
    }
    return [
        Diagnostic(_choose_code(finding), describe(finding), place(finding, file, by_name, shared), advise(finding))
        for finding in diagnostics
        if not _is_name(finding) or name_findings[finding.target.name, finding.tool] is finding
    ]


def _is_name(finding: Finding) -> bool:
    return finding.rule.kind in _NAMES


def _breaks_mcp_rule(finding: Finding) -> bool:
    """Return whether the finding is about a name that MCP itself forbids, which SW310 reports."""
    is_name = finding.rule.kind == "name" and not finding.rule.is_sure
    return is_name and not _MCP_NAME.fullmatch(finding.tool or "")


def _report_unknown(name: str, manifest: ir.Manifest, file: str) -> Diagnostic:
    place = Place(file, ("targets", manifest.targets.index(name))) if name in manifest.targets else None
    return Diagnostic(
        "SW284", f"there is no target `{name}`", place, did_you_mean(name, targets.TARGETS.list_names(), "targets")
    )


def describe(finding: Finding) -> str:
    """Describe a finding in a clause: the part, the number of other occurrences, and the effect."""
    subject = finding.what if finding.tool is None else f"`{finding.tool}` {finding.what}"
    others = f", and in {finding.others} more {'place' if finding.others == 1 else 'places'}" if finding.others else ""
    return f"{subject}{others}, which {_describe_effect(finding)}"


def advise(finding: Finding) -> str:
    """Return the fix for a finding, the consequence of ignoring it, and the rule's source."""
    target = finding.target
    if finding.rule.consequence:
        otherwise = finding.rule.consequence
    elif finding.rule.is_lossy:
        otherwise = "models do not see it"
    elif target.name in PROJECTED:
        otherwise = (
            f"use the output of `stubwright export --target {target.name}`, because without it {target.consequence}"
        )
    else:
        otherwise = target.consequence
    return f"{finding.fix}; otherwise {otherwise} ({finding.rule.source})"


def place(finding: Finding, file: str, tools: Mapping[str, ir.Tool], shared: Mapping[str, Place]) -> Place:
    """Return the source location of a finding.

    Args:
        file: The entry file, for findings about all tools.
        tools: The manifest's tools, keyed by name.
        shared: The locations of shared schemas by name.
    """
    if finding.tool is None:
        return Place(file, ("server", "name"))
    return _locate(tools[finding.tool], finding.pointer, shared)


def _describe_effect(finding: Finding) -> str:
    if finding.rule.is_lossy:
        return f"`{finding.target.name}` omits"
    if finding.target.name == targets.PORTABLE:
        return "some clients reject"
    return f"`{finding.target.name}` {'rejects' if finding.rule.is_sure else 'reportedly rejects'}"


def _choose_code(finding: Finding) -> str:
    kind, is_sure = finding.rule.kind, finding.rule.is_sure
    if finding.rule.is_lossy:
        return "SW354"
    if kind in _NAMES:
        return "SW280" if is_sure else "SW311"
    if kind in _PROPERTIES:
        return "SW281" if is_sure else "SW351"
    if kind in _BOUNDS:
        return "SW283" if is_sure else "SW353"
    if is_sure:
        return "SW282"
    return "SW313" if kind == "plain root" else "SW352"


def _locate(tool: ir.Tool, pointer: Pointer, shared: Mapping[str, Place]) -> Place:
    """Return the source location of a pointer into a tool's definition. The pointer can lead into a shared schema."""
    if pointer[:1] != ("inputSchema",):
        return tool.place / pointer[0]
    below = pointer[1:]
    place = Place(tool.input.place.file, (*tool.input.place.pointer, *below))
    if len(below) > 1 and below[0] in ("$defs", "definitions"):
        name = tool.input.shared.get(f"#/{below[0]}/{below[1]}")
        if name is not None and name in shared:
            place = Place(shared[name].file, (*shared[name].pointer, *below[2:]))
    return place.point_at_key() if below and isinstance(below[-1], str) else place
