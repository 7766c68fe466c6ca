"""Middlewares that every message of a server passes through."""
