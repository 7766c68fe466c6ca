"""MCP client features, one module per feature."""
