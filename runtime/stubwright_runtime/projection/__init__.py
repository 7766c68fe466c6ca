"""Converts tools to the formats of model APIs, and model calls back to tool calls."""
