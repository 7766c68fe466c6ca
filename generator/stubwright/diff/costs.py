"""Compares the token costs of a server's lists in two manifests."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from stubwright import tokens
from stubwright.compile.audience import costs

if TYPE_CHECKING:
    from collections.abc import Sequence

    from stubwright import ir


@dataclass(frozen=True, slots=True)
class ToolCost:
    """The old and new token counts of a tool. A count is None if that manifest lacks the tool."""

    name: str
    old: int | None
    new: int | None

    @property
    def difference(self) -> int:
        """The number of additional tokens; negative if there are fewer."""
        return (self.new or 0) - (self.old or 0)


@dataclass(frozen=True, slots=True)
class CostChange:
    """The old and new token counts of a server's lists.

    Attributes:
        unit: The unit of the counts, which can be estimates.
        tools: The tools with changed costs, in the new manifest's order, followed by removed tools.
    """

    old: int
    new: int
    unit: str
    tools: Sequence[ToolCost] = ()

    @property
    def difference(self) -> int:
        """The number of additional tokens; negative if there are fewer."""
        return self.new - self.old


def compare_costs(old: ir.Manifest, new: ir.Manifest) -> CostChange:
    """Compare the token costs of two manifests."""
    before, after = costs.measure(old), costs.measure(new)
    tools = [ToolCost(name, before.tools.get(name), after.tools.get(name)) for name in {**after.tools, **before.tools}]
    return CostChange(before.server, after.server, tokens.name_unit(), [tool for tool in tools if tool.difference])
