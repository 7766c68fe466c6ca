"""Printers: a module for each format, which takes diagnostics with the texts that they are about, and gives text.

They print nothing themselves. What they give ends in a line break, and but for colours a terminal obeys none of it.
"""

from stubwright.diagnostics.printers import github, json, text, unified

__all__ = ["github", "json", "text", "unified"]
