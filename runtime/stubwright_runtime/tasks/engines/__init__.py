"""Task engines, in this process or over a Redis stream, and the scheduling of tasks."""
