"""Contract tests of any MCP server: calls made from the schemas that it lists, and faults in its answers."""

from typing import Final

DEADLINE: Final = 10.0
"""Seconds for each answer, unless a run says otherwise."""

BUDGET: Final = 60.0
"""Seconds for all calls of a server."""

CASES: Final = 100
"""Calls of each tool."""
