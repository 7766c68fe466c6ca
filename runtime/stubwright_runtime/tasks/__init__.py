"""Calls that go on after their answer: tasks, as MCP 2025-11-25 and the tasks extension of 2026-07-28 have them."""
