"""Contract tests of any MCP server: calls made from the schemas that it lists, and what is wrong with its answers."""
