"""The cost of a change for models: the tokens of a server's lists, as they were and as they are."""

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
    """The tokens of one tool, as it was and as it is; None if there is no tool of this name."""

    name: str
    old: int | None
    new: int | None

    @property
    def difference(self) -> int:
        """The number of additional tokens; negative if there are fewer."""
        return (self.new or 0) - (self.old or 0)


@dataclass(frozen=True, slots=True)
class CostChange:
    """The tokens of all that a server lists, as it was and as it is.

    Attributes:
        old: As it was.
        new: As it is.
        unit: What is counted, and whether it is an estimate.
        tools: The tools that cost more or less, in the order of the new manifest; then those that are gone.
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
