"""Checks what models and clients see of tools: selection, names, cost and compatibility."""
