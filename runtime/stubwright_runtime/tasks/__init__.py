"""Tasks: calls that continue after their response (MCP 2025-11-25, and the 2026-07-28 tasks extension)."""
