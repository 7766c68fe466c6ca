"""Imports server objects of FastMCP and the MCP SDK from Python files."""
