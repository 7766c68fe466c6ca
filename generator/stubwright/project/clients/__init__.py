"""The configuration files of MCP clients: where they are, and how a server is written into one and taken out."""
