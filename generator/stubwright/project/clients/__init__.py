"""Finds the configuration files of MCP clients and adds and removes servers."""
