"""Python files as syntax trees, parsed once for all tests in a process."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from functools import cache
from pathlib import Path


@cache
def read(path: Path) -> str:
    """Return a file's text."""
    return path.read_text("utf-8")


@cache
def parse(path: Path) -> ast.Module:
    """Return a file's syntax tree."""
    return ast.parse(read(path))


@cache
def walk(path: Path) -> Sequence[ast.AST]:
    """Return all nodes in a file's syntax tree, outer ones first."""
    return tuple(ast.walk(parse(path)))
