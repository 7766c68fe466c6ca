"""Resumable streams (MCP 2025-11-25 and earlier): their messages are stored in one process or in the shared store."""
