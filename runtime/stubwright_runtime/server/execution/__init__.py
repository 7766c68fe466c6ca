"""Runs handlers in threads, cancels them, and handles stop signals."""
