"""Types of stubs as a module writes them that imports its package as a whole: `api.GetInput`.

Takes types and the name of the package in the module; gives types.
"""

from __future__ import annotations

import ast
from collections.abc import Collection

from stubwright.codegen.surface import Type
from stubwright.project.handwritten import imports
from stubwright.pycode import Code, Name, trust


def qualify(kind: Type, alias: str, known: Collection[str]) -> Type:
    """Return a type whose names are attributes of `alias`, but for those that are known or of the standard library."""
    wanted = {name for name in kind.names if name not in known and name not in imports.STANDARD}
    text, *choices = (_qualified(each, alias, wanted) for each in (kind.text, *kind.choices))
    return Type(text, tuple(choices), frozenset({*(kind.names - wanted), Name(alias)}) if wanted else kind.names)


def _qualified(text: Code, alias: str, wanted: Collection[str]) -> Code:
    data = text.encode()  # `ast` counts bytes
    nodes = [node for node in ast.walk(ast.parse(text, mode="eval")) if isinstance(node, ast.Name)]
    for node in sorted(nodes, key=lambda node: node.col_offset, reverse=True):
        if node.id in wanted:
            data = data[: node.col_offset] + f"{alias}.".encode() + data[node.col_offset :]
    return trust(data.decode())
