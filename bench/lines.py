"""Counts lines of code: all lines except blank lines, comments and docstrings.

In Python, a line counts if it has a token of code; docstrings of modules, classes and functions do not count, nor do
strings below an attribute. In YAML, a line counts if it is neither blank nor a comment.
"""

from __future__ import annotations

import ast
import io
import tokenize
from pathlib import Path

_NOTHING = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER}
)


def count(path: Path) -> int:
    """Return the number of code lines in a Python or YAML file."""
    text = path.read_text("utf-8")
    if path.suffix != ".py":
        return sum(bool(line.strip()) and not line.lstrip().startswith("#") for line in text.splitlines())
    tokens = [token for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type not in _NOTHING]
    held = {line for token in tokens for line in range(token.start[0], token.end[0] + 1)}
    return len(held - _documentation(ast.parse(text)))


def _documentation(tree: ast.Module) -> set[int]:
    """Return the line numbers of docstrings and other string statements."""
    return {
        line
        for node in ast.walk(tree)
        if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)
        for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)
    }
