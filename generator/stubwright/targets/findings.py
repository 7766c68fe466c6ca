"""The findings of targets on a list of tools in its wire format.

`check` and `diff` show them, and projections are tested by them.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stubwright.targets import rules

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from stubwright.diagnostics import Pointer
    from stubwright.targets.listing import ListedTool
    from stubwright.targets.table import Rule, Target


@dataclass(frozen=True, slots=True)
class Finding:
    """A part of a list that a target does not accept.

    Attributes:
        target: The target.
        rule: Its rule.
        tool: The name of the tool; `None` if it is about the list as a whole.
        pointer: Where in the tool's definition it is.
        what: What is wrong, as the rest of a sentence that begins with the tool.
        fix: What to do about it.
        others: How many more places of the tool are wrong in the same way.
    """

    target: Target
    rule: Rule
    tool: str | None
    pointer: Pointer
    what: str
    fix: str
    others: int = 0


def judge(tools: Sequence[ListedTool], target: Target, part: Sequence[ListedTool] | None = None) -> Iterator[Finding]:
    """Yield each part that a target does not accept, in the order of its rules and of the tools.

    Args:
        tools: All tools that a client gets in one list.
        target: The target.
        part: Those of the tools that are looked at by themselves; all, where it is omitted.
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
