"""Types in the brackets after a base, which Python evaluates as it reads the class."""

from __future__ import annotations

import ast
from collections.abc import Container
from functools import reduce

from stubwright.codegen.source.literals import requote
from stubwright.pycode import Code, trust

UNIONS = frozenset({"Optional", "Union"})
"""Names of `typing` that represent unions. A name in quotes has no `|`."""


def put_in_brackets(kind: str, later: Container[str]) -> Code:
    """Return the source of a type in brackets after a base.

    Args:
        kind: The type, as datamodel-code-generator prints it.
        later: The classes that may come after this one.
    """
    evaluated = _UnionWriter(later).visit(ast.parse(kind, mode="eval").body)
    return trust(requote(ast.unparse(evaluated)))


def find_names_of_bases(source: Code) -> set[str]:
    """Return the names in the bases of a class."""
    return {
        node.id
        for written in ast.parse(source).body
        if isinstance(written, ast.ClassDef)
        for base in written.bases
        for node in ast.walk(base)
        if isinstance(node, ast.Name)
    }


class _UnionWriter(ast.NodeTransformer):
    """Puts later classes in quotes, and writes each union with `|` unless a member is a name in quotes."""

    def __init__(self, later: Container[str]) -> None:
        self._later = later

    def visit_Name(self, node: ast.Name) -> ast.expr:
        return ast.Constant(node.id) if node.id in self._later else node

    def visit_BinOp(self, node: ast.BinOp) -> ast.expr:
        return self._union(node)

    def visit_Subscript(self, node: ast.Subscript) -> ast.expr:
        match node.value:
            case ast.Name("Literal"):
                return node
            case ast.Name(name) if name in UNIONS:
                return self._union(node)
        node.slice = self.visit(node.slice)
        return node

    def _union(self, node: ast.expr) -> ast.expr:
        members: list[ast.expr] = [self.visit(member) for member in _members(node)]
        if any(isinstance(member, ast.Constant) and isinstance(member.value, str) for member in members):
            return ast.Subscript(ast.Name("Union"), ast.Tuple(members))
        return reduce(lambda left, right: ast.BinOp(left, ast.BitOr(), right), members)


def _members(node: ast.expr) -> list[ast.expr]:
    """Return the types of a union, from left to right."""
    match node:
        case ast.BinOp(left, ast.BitOr(), right):
            return [*_members(left), *_members(right)]
        case ast.Subscript(ast.Name("Union"), ast.Tuple(members)):
            return [part for member in members for part in _members(member)]
        case ast.Subscript(ast.Name("Optional"), member):
            return [*_members(member), ast.Constant(None)]
    return [node]
