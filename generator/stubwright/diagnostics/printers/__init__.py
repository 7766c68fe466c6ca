"""Diagnostic printers, one module per format.

A printer returns text that ends in a line break. The only escape sequences in it are colors.
"""

from stubwright.diagnostics.printers import github, json, text, unified_diff

__all__ = ["github", "json", "text", "unified_diff"]
