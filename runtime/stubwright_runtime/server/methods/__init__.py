"""The MCP methods that servers implement, one module per feature."""
