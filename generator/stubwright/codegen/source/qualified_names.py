"""Adds a module's name to the names in types."""

from __future__ import annotations

import ast
from collections.abc import Collection

from stubwright.pycode import Code, Name, trust


def qualify_names(text: Code, alias: Name, names: Collection[str]) -> Code:
    """Prefix each of these names in a type with `alias`."""
    data = text.encode()  # `ast` offsets are in bytes
    nodes = [node for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)]
    for node in sorted(nodes, key=lambda node: node.col_offset, reverse=True):
        if node.id in names:
            data = data[: node.col_offset] + f"{alias}.".encode() + data[node.col_offset :]
    return trust(data.decode())
