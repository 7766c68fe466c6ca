"""The features of MCP that a server can have, a module for each."""
