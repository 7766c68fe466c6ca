"""Printers: a module for each format, from diagnostics with their texts to text.

They only return text, which ends in a line break and, except for colours, contains no escape sequences.
"""

from stubwright.diagnostics.printers import github, json, text, unified

__all__ = ["github", "json", "text", "unified"]
