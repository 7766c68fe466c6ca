"""The MCP features that a server can have, one per module."""
