"""The HTTP listener."""
