"""Renders Python source: literals, imports, docstrings, templates and formatting."""
