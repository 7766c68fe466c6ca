"""Server objects in Python files: FastMCP's, and those of MCP's SDK."""
