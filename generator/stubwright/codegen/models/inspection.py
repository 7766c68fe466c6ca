"""Checks that generated models contain only declarations, and that client methods only call the client.

datamodel-code-generator prints enumeration literals itself, so its output is checked before use.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator

from stubwright import naming
from stubwright.pycode import Code, Name, trust

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


def parse_declaration(text: str, name: Name) -> Code:
    """Return `text` as source if it is the class `name` and only declares fields.

    Raises:
        ValueError: The text contains other code.
    """
    match ast.parse(text).body:
        case [ast.ClassDef() as written] if written.name == name:
            require_declarations(written)
            return trust(text)
        case _:
            raise ValueError(f"the generated text does not define the class `{name}`")


def require_declarations(written: ast.ClassDef) -> None:
    """Check that a class contains only annotated fields and docstrings, and calls only field functions.

    Raises:
        ValueError: The class contains other code.
    """
    for setting in written.keywords:
        if not _is_literal(setting.value):
            raise _make_error(written, setting.value)
    for part in (*written.bases, *written.body):
        match part:
            case ast.Expr(value=ast.Constant(value=str())) | ast.Pass():
                continue
            case ast.AnnAssign(target=ast.Name(), annotation=kind):
                inside = ast.walk(part)
            case ast.expr() as kind:
                inside = ast.walk(part)
            case _:
                raise _make_error(written, part)
        for text in _texts_among_types(kind):
            if not _is_type(text):
                raise _make_error(written, ast.Constant(text))
        for node in inside:
            if not isinstance(node, _KNOWN) or (isinstance(node, ast.Call) and not _makes_a_field(node)):
                raise _make_error(written, node)
    if written.decorator_list:
        raise _make_error(written, written.decorator_list[0])


def parse_module(text: str) -> Code:
    """Return a models module as source if it only imports names for models and declares classes.

    Raises:
        ValueError: The module contains other code.
    """
    for part in ast.parse(text).body:
        match part:
            case ast.Expr(value=ast.Constant(value=str())):
                continue
            case ast.ImportFrom() if _is_import_of_models(part):
                continue
            case ast.ClassDef():
                require_declarations(part)
            case ast.AnnAssign(target=ast.Name(), annotation=ast.Name(id="TypeAlias"), value=ast.Name()):
                continue
            case _:
                raise ValueError(f"a models module contains unexpected code: `{ast.unparse(part)}`")
    return trust(text)


def parse_method(text: str) -> Code:
    """Return a client method as source if it only calls one of the client's methods with its arguments.

    Raises:
        ValueError: The method contains other code.
    """
    match ast.parse(f"class _:\n{text}").body:
        case [ast.ClassDef(bases=[], keywords=[], decorator_list=[], body=[ast.AsyncFunctionDef() as written])]:
            pass
        case _:
            raise ValueError("the cached text is not a method")
    match written.body:
        case [
            ast.Expr(value=ast.Constant(value=str())),
            ast.Return(
                value=ast.Await(value=ast.Call(func=ast.Attribute(value=ast.Name(id="self")), args=given, keywords=[]))
            ),
        ]:
            pass
        case _:
            raise ValueError(f"the method `{written.name}` must only call the client")
    arguments = written.args
    every = (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs, arguments.vararg, arguments.kwarg)
    kinds = [each.annotation for each in every if each is not None and each.annotation is not None]
    kinds += [written.returns] if written.returns is not None else []
    values = [*given, *arguments.defaults, *(each for each in arguments.kw_defaults if each is not None)]
    if not (
        all(map(_is_decorator, written.decorator_list))
        and all(_holds_only(value, _VALUES) for value in values)
        and all(_holds_only(kind, _VALUES) and all(map(_is_type, _texts_among_types(kind))) for kind in kinds)
    ):
        raise ValueError(f"the method `{written.name}` contains code that no client method needs")
    return trust(text)


_VALUES = (*_TYPES, ast.Load, ast.UnaryOp, ast.USub)


def _holds_only(value: ast.AST, kinds: tuple[type[ast.AST], ...]) -> bool:
    return all(isinstance(node, kinds) for node in ast.walk(value))


def _is_decorator(value: ast.expr) -> bool:
    match value:
        case ast.Call(func=ast.Name(id="deprecated"), args=[ast.Constant(value=str())], keywords=[]):
            return True
        case ast.Attribute(value=ast.Name(id="_runtime"), attr="paged" | "started"):
            return True
        case ast.Call(
            func=ast.Name(id="_cast"),
            args=[
                ast.Constant(value=str(kind)),
                ast.Call(
                    func=ast.Attribute(value=ast.Name(id="_runtime"), attr="PagedBy"),
                    args=[ast.Constant(value=str())],
                    keywords=[],
                ),
            ],
            keywords=[],
        ):
            return _is_type(kind)
        case _:
            return False


def _is_import_of_models(part: ast.ImportFrom) -> bool:
    """Return whether an import has only names that models use and renames no callable."""
    names = {alias.asname or alias.name for alias in part.names}
    if part.level:
        return _CALLED.isdisjoint(names) and "*" not in names
    if part.module == "__future__":
        return True
    is_itself = part.module == "datetime" or all(alias.asname is None for alias in part.names)
    return is_itself and names <= naming.MODEL_IMPORTS.get(part.module or "", frozenset())


def _is_type(text: str) -> bool:
    """Return whether `text` is a type made up only of names and `Literal` values, so that it is safe to evaluate."""
    if text.isidentifier():
        return True
    kind = ast.parse(text, mode="eval").body
    known = (*_TYPES, ast.Load, ast.UnaryOp, ast.USub)  # unary minus, for negative literals
    return all(isinstance(node, known) for node in ast.walk(kind)) and not [*_texts_among_types(kind)]


def _is_literal(value: ast.expr) -> bool:
    match value:
        case ast.Set(elts=members):
            return all(isinstance(each, ast.Constant) for each in members)
        case _:
            return isinstance(value, ast.Constant)


def _texts_among_types(kind: ast.expr) -> Iterator[str]:
    """Yield the strings in a type, except the values of `Literal` and the arguments of calls."""
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


def _make_error(written: ast.ClassDef, node: ast.AST) -> ValueError:
    return ValueError(f"the class `{written.name}` contains code that no model needs: `{ast.unparse(node)}`")
