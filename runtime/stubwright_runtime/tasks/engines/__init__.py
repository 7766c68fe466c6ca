"""Task engines, in memory or on a Redis stream, and task scheduling."""
