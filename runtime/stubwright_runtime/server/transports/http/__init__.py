"""Streamable HTTP: the ASGI application, its middleware and its limits."""
