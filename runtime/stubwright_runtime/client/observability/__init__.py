"""Records, metrics and spans of calls."""
