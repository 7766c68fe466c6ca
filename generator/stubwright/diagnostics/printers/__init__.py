"""Diagnostic printers, one module per format.

They return text that ends in a line break. Its only escape sequences are colors.
"""

from stubwright.diagnostics.printers import github, json, text, unified_diff

__all__ = ["github", "json", "text", "unified_diff"]
