"""Rules of clients and models: a table of rules with their sources, and their judgement of a list of tools."""

from stubwright.targets.findings import Finding, judge
from stubwright.targets.listing import ListedTool, make_list
from stubwright.targets.table import PORTABLE, TARGETS, Rule, Target

__all__ = ["PORTABLE", "TARGETS", "Finding", "ListedTool", "Rule", "Target", "judge", "make_list"]
