"""Middleware that processes every message to a server."""
