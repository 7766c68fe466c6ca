"""A handwritten module as read: its syntax, positions in it, and the questions of both its readers.

Nothing is imported.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Final

from stubwright.diagnostics import Span
from stubwright.project.handwritten import imports

Function = ast.FunctionDef | ast.AsyncFunctionDef


@dataclass(frozen=True)
class Module:
    """A module: its path as diagnostics show it, its text, and its syntax."""

    path: str
    text: str
    syntax: ast.Module

    @cached_property
    def _lines(self) -> list[bytes]:
        return self.text.replace("\r\n", "\n").replace("\r", "\n").encode().split(b"\n")

    def find_span(self, line: int | None, column: int | None, name: str, *, ends: bool = False) -> Span:
        """Return the span of a name that starts, or ends, at a place of the syntax, which counts bytes."""
        line, column = line or 1, column or 0
        characters = len(self._lines[line - 1][:column].decode(errors="replace"))
        first = (characters - len(name) if ends else characters) + 1
        return Span(self.path, line, first, line, first + len(name))


def parse(path: str, text: str) -> Module | None:
    """Parse a module; None if it is not valid Python."""
    try:
        return Module(path, text, ast.parse(text))
    except (SyntaxError, ValueError):  # the latter of a null byte, in some releases of Python
        return None


def is_dunder(name: str) -> bool:
    """Return whether a name is one of Python's own, such as `__doc__`."""
    return name.startswith("__") and name.endswith("__")


def handles(node: ast.Try | ast.TryStar, failures: frozenset[str]) -> bool:
    """Return whether a `try` handles one of these exceptions, by their names; also by those that all exceptions
    have.
    """
    return any(
        handler.type is None or not _names(handler.type).isdisjoint(failures | _ALL) for handler in node.handlers
    )


def _names(expression: ast.expr) -> set[str]:
    return {each.id for each in ast.walk(expression) if isinstance(each, ast.Name)}


_ALL: Final = frozenset({"BaseException", "Exception"})


def find_running(node: ast.AST, failures: frozenset[str]) -> Iterator[ast.AST]:
    """Yield the parts of a node that run, and whose failure by one of these exceptions nothing handles."""
    match node:
        case ast.If(orelse=orelse) if imports.is_for_types(node):
            yield from orelse
        case ast.Try() | ast.TryStar() if handles(node, failures):
            yield from (*node.handlers, *node.orelse, *node.finalbody)
        case _:
            yield from ast.iter_child_nodes(node)


def find_tested(node: ast.AST, names: Collection[str]) -> frozenset[str] | None:
    """Return the attributes of these names that `hasattr` checks or `setattr` sets; None if they are not literal."""
    attributes = set()
    for each in ast.walk(node):
        match each:
            case ast.Call(func=ast.Name(id="hasattr" | "setattr"), args=[ast.Name(id=name), attribute, *_]):
                if name in names:
                    if not (isinstance(attribute, ast.Constant) and isinstance(attribute.value, str)):
                        return None
                    attributes.add(attribute.value)
            case _:
                pass
    return frozenset(attributes)
