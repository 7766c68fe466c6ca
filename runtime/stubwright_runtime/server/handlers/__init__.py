"""Handlers: their lifespan, arguments and return values."""
