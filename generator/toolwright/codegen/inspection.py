"""What datamodel-code-generator may write: declarations, and nothing that does anything else.

Takes the text of a class that it wrote, and gives it as source. Literals of enumerations are printed by the generator
and not by us, so that what it made of them is looked through before it is taken.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from toolwright.pycode import Code, Name, trusted

_TYPES = (ast.Attribute, ast.BinOp, ast.BitOr, ast.Constant, ast.Dict, ast.List, ast.Name, ast.Subscript, ast.Tuple)
_STATED = (
    ast.AnnAssign,
    ast.Call,
    ast.keyword,
    ast.Lambda,
    ast.arguments,
    ast.UnaryOp,
    ast.USub,
    ast.Load,
    ast.Store,
)
_KNOWN = (*_TYPES, *_STATED)
_CALLED = frozenset({"Field", "cast", "float"})


def declared(text: str) -> tuple[Name, Code]:
    """The name of a class and its text as source, if the text is a class that only declares, and nothing else.

    Raises:
        ValueError: It is not.
    """
    match ast.parse(text).body:
        case [ast.ClassDef() as written]:
            require_declarations(written)
            return Name(written.name), trusted(text)
        case _:
            raise ValueError("something was written that is no class")


def require_declarations(written: ast.ClassDef) -> None:
    """See that a class has annotated fields and docstrings alone, and calls nothing but what makes fields.

    Raises:
        ValueError: It has something else.
    """
    for setting in written.keywords:
        if not _is_literal(setting.value):
            raise _refused(written, setting.value)
    for part in (*written.bases, *written.body):
        match part:
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                continue
            case ast.AnnAssign(target=ast.Name(), annotation=kind):
                inside = ast.walk(part)
            case ast.expr() as kind:
                inside = ast.walk(part)
            case _:
                raise _refused(written, part)
        for text in _texts_among_types(kind):
            if not _is_type(text):
                raise _refused(written, ast.Constant(text))
        for node in inside:
            if not isinstance(node, _KNOWN) or (isinstance(node, ast.Call) and not _makes_a_field(node)):
                raise _refused(written, node)
    if written.decorator_list:
        raise _refused(written, written.decorator_list[0])


def _is_type(text: str) -> bool:
    """Whether a text is a type that is looked up later: a name, or built of names and values of `Literal` alone."""
    if text.isidentifier():
        return True
    kind = ast.parse(text, mode="eval").body
    known = (*_TYPES, ast.Load, ast.UnaryOp, ast.USub)  # with negative numbers
    return all(isinstance(node, known) for node in ast.walk(kind)) and not [*_texts_among_types(kind)]


def _is_literal(value: ast.expr) -> bool:
    match value:
        case ast.Set(elts=members):
            return all(isinstance(each, ast.Constant) for each in members)
        case _:
            return isinstance(value, ast.Constant)


def _texts_among_types(kind: ast.expr) -> Iterator[str]:
    """The texts in a type that are not the values of a `Literal`, nor what a call is given."""
    waiting: list[ast.AST] = [kind]
    while waiting:
        match waiting.pop():
            case ast.Subscript(value=ast.Name(id="Literal")) | ast.Call():
                continue
            case ast.Constant(value=str(text)):
                yield text
            case node:
                waiting += ast.iter_child_nodes(node)


def _makes_a_field(call: ast.Call) -> bool:
    match call.func:
        case ast.Name(id=name):
            return name in _CALLED
        case ast.Attribute(value=ast.Name(), attr=name):
            return name == "model_validate"
        case _:
            return False


def _refused(written: ast.ClassDef, node: ast.AST) -> ValueError:
    return ValueError(f"the class `{written.name}` would have code that no model needs: `{ast.unparse(node)}`")
