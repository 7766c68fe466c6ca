"""Printers of diagnostics, a module for each format.

They return text that ends in a line break and contains no escape sequences except colours.
"""

from stubwright.diagnostics.printers import github, json, text, unified_diff

__all__ = ["github", "json", "text", "unified_diff"]
