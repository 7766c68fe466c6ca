"""Python files as syntax trees, parsed once for all tests of a process."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cache
from pathlib import Path


@cache
def read(path: Path) -> str:
    """Return the text of a file."""
    return path.read_text("utf-8")


@cache
def parse(path: Path) -> ast.Module:
    """Return the syntax tree of a file."""
    return ast.parse(read(path))


@cache
def walk(path: Path) -> Sequence[ast.AST]:
    """Return all nodes of the syntax tree of a file, outer ones first."""
    return tuple(ast.walk(parse(path)))
