"""Handlers: loading and checking them, and what they return."""
