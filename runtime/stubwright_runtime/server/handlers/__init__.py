"""Handlers: loading and checking them, and their return values."""
