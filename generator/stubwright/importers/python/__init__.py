"""Server objects of FastMCP and of MCP's SDK in Python files."""
