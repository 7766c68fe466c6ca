"""Contract tests for any MCP server: calls the server's tools with generated arguments and checks the responses."""

from typing import Final

DEADLINE: Final = 10.0
"""The default time limit for each response, in seconds."""

BUDGET: Final = 60.0
"""The default time limit for all calls to a server, in seconds."""

CASES: Final = 100
"""The default number of calls per tool."""
