"""Adapters that pass a client's tools to agent frameworks, one module per framework."""
