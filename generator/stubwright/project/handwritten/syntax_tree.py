"""A handwritten module's syntax tree, and positions in it."""

from __future__ import annotations

import ast
from dataclasses import dataclass
from functools import cached_property

from stubwright.diagnostics import Span

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """A module: its path as diagnostics show it, its text, and its syntax tree."""

    path: str
    text: str
    syntax: ast.Module

    @cached_property
    def _lines(self) -> list[bytes]:
        return self.text.replace("\r\n", "\n").replace("\r", "\n").encode().split(b"\n")

    def find_span(self, line: int | None, column: int | None, name: str) -> Span:
        """Return the span of a name that ends at this line and column. The column is a byte offset, as in `ast`."""
        line, column = line or 1, column or 0
        first = len(self._lines[line - 1][:column].decode(errors="replace")) - len(name) + 1
        return Span(self.path, line, first, line, first + len(name))


def is_dunder(name: str) -> bool:
    """Return whether a name is one of Python's special names, such as `__doc__`."""
    return name.startswith("__") and name.endswith("__")
