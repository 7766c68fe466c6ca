"""The cost of a change for models: the old and the new tokens of a server's lists."""

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
    """The old and the new tokens of one tool; None if there is no tool of this name."""

    name: str
    old: int | None
    new: int | None

    @property
    def difference(self) -> int:
        """The number of additional tokens; negative if there are fewer."""
        return (self.new or 0) - (self.old or 0)


@dataclass(frozen=True, slots=True)
class CostChange:
    """The old and the new tokens of a server's lists.

    Attributes:
        old: The old number.
        new: The new number.
        unit: The unit of the count, which may be an estimate.
        tools: The tools that cost more or less, in the order of the new manifest; then the removed tools.
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
    """Return the costs of two manifests."""
    before, after = costs.measure(old), costs.measure(new)
    tools = [ToolCost(name, before.tools.get(name), after.tools.get(name)) for name in {**after.tools, **before.tools}]
    return CostChange(before.server, after.server, tokens.name_unit(), [tool for tool in tools if tool.difference])
