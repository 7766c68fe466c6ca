"""Middleware around the handling of messages and streams."""
