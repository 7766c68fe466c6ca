"""Checks `budget`: the maximum cost of tools, toolsets and the server, in tokens."""

from __future__ import annotations

from typing import TYPE_CHECKING

from stubwright import tokens
from stubwright.compile.audience import costs
from stubwright.diagnostics import Diagnostic, Place

if TYPE_CHECKING:
    from collections.abc import Container, Iterator, Sequence

    from stubwright import ir


def check(manifest: ir.Manifest, file: str, part: Container[str]) -> Iterator[Diagnostic]:
    """Yield a diagnostic for each exceeded budget.

    Args:
        file: The path of the entry file.
        part: Names of the tools to check.
    """
    budget = manifest.budget
    if not budget:
        return
    unit = tokens.name_unit()
    cost = costs.measure(manifest)
    by_name = {tool.name: tool for tool in manifest.tools}

    def report(subject: str, spent: int, key: str, place: Place, tools: Sequence[ir.Tool]) -> Diagnostic:
        saving = costs.suggest_cuts([tool.listed for tool in tools])
        message = f"{subject} costs {spent:,} {unit}; the budget is {budget[key]:,}"
        return Diagnostic("SW287", message, place, "; or ".join(saving) or "raise the budget")

    for name, tool in by_name.items():
        if name in part and cost.tools[name] > budget.get("tool", cost.tools[name]):
            yield report(f"`{name}`", cost.tools[name], "tool", tool.place, [tool])
    for name, toolset in manifest.toolsets.items():
        if cost.toolsets[name] > budget.get("toolset", cost.toolsets[name]):
            tools = [by_name[each] for each in toolset["tools"]]
            place = Place(file, ("toolsets", name))
            yield report(f"the toolset `{name}`", cost.toolsets[name], "toolset", place, tools)
    if cost.server > budget.get("server", cost.server):
        yield report("the whole server", cost.server, "server", Place(file, ("budget", "server")), manifest.tools)
