"""The features of MCP that a client can use, a module for each."""
