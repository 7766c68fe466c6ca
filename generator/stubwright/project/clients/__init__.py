"""The configuration files of MCP clients: their paths, and the edits that write a server into one or take it out."""
