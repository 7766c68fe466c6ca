"""Adapters that expose a client's tools to agent frameworks, one module per framework."""
