"""The MCP methods, one module per kind."""
