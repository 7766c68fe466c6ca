"""Tasks: calls that continue after their answer (MCP 2025-11-25, and the tasks extension of 2026-07-28)."""
