"""Diagnostics, and the printers that format them."""

from stubwright.diagnostics.codes import CODES, Code, Diagnostic, Severity, has_errors
from stubwright.diagnostics.spans import Place, Pointer, Span

__all__ = ["CODES", "Code", "Diagnostic", "Place", "Pointer", "Severity", "Span", "has_errors"]
