"""Middlewares that process every message to a server."""
