"""Conversations with MCP servers: written down as they pass, without secrets, and answered from again."""
