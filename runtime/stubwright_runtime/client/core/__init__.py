"""Performs client calls, from typed arguments to typed results."""
