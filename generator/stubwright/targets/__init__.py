"""What clients and models take: a table of rules with their sources, and what each of them says of a list of tools."""

from stubwright.targets.judging import Finding, judge
from stubwright.targets.listing import Listed, listed
from stubwright.targets.table import PORTABLE, TARGETS, Rule, Target

__all__ = ["PORTABLE", "TARGETS", "Finding", "Listed", "Rule", "Target", "judge", "listed"]
