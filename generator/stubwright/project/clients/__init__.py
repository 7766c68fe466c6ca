"""The configuration files of MCP clients: finds them, and adds and removes servers."""
