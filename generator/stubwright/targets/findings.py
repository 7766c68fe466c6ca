"""Finds violations of targets' rules in a tool list, as sent on the wire."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stubwright.targets import rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stubwright.diagnostics import Pointer
    from stubwright.targets.table import Rule, Target
    from stubwright.targets.tool_list import ListedTool


@dataclass(frozen=True, slots=True)
class Finding:
    """A violation of a target's rule.

    Attributes:
        target: The target.
        rule: The rule.
        tool: The tool's name, or None if the whole list violates the rule.
        pointer: The location in the tool's definition.
        what: The fault, as a clause that follows the tool's name.
        fix: The fix.
        others: The number of other locations in the tool with the same fault.
    """

    target: Target
    rule: Rule
    tool: str | None
    pointer: Pointer
    what: str
    fix: str
    others: int = 0


def find_violations(
    tools: Sequence[ListedTool], target: Target, part: Sequence[ListedTool] | None = None
) -> Iterator[Finding]:
    """Yield violations of a target's rules, in the order of the rules and tools.

    Args:
        tools: All tools in a client's list.
        target: The target to check.
        part: The tools to check individually, or None for all. Rules for lists always apply to all tools.
    """
    for rule in target.rules:
        for_each = rules.OF_TOOLS.get(rule.kind)
        if for_each is None:
            for what, fix in rules.OF_LISTS[rule.kind](tools, rule.value):
                yield Finding(target, rule, None, (), what, rule.fix or fix)
            continue
        for tool in tools if part is None else part:
            breaches = list(for_each(tool, rule.value))
            if breaches:
                pointer, what, fix = breaches[0]
                yield Finding(target, rule, tool.name, pointer, what, rule.fix or fix, len(breaches) - 1)
