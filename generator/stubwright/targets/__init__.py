"""Client and model rules: a table of rules with their sources, and their violations in a tool list."""

from stubwright.targets.findings import Finding, find_violations
from stubwright.targets.table import PORTABLE, TARGETS, Rule, Target
from stubwright.targets.tool_list import ListedTool, make_list

__all__ = ["PORTABLE", "TARGETS", "Finding", "ListedTool", "Rule", "Target", "find_violations", "make_list"]
