"""Resumable streams (MCP 2025-11-25 and earlier): event logs in one process or in the shared store."""
