"""Attributes of `ctx` that handwritten code uses, and that its context does not have.

It follows parameters whose class is known, and plain aliases of them. Uncertain cases are left alone: parameters that
are assigned to, attributes that the module sets or tests with `hasattr`, and what is below `TYPE_CHECKING` or in a
`try` that handles `AttributeError`.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

from stubwright import naming
from stubwright.codegen.pages.interface import RUNTIME
from stubwright.diagnostics import Diagnostic
from stubwright.diagnostics.suggestions import did_you_mean
from stubwright.project.handwritten import imports, reading, scopes
from stubwright.project.handwritten.reading import Function, Module

if TYPE_CHECKING:
    from stubwright.codegen.pages.interface import Interface

_FAILURES: Final = frozenset({"AttributeError"})

_DECLARED: Final = {
    "ask": "declare the questions of this tool or prompt as `ask` under its `stubwright`",
    "handles": "declare `handles` in the manifest; tools get them",
}
"""The remedies for attributes that the manifest brings."""


@dataclass(frozen=True, slots=True)
class ContextParameter:
    """A parameter that is a context: the class that it has, and the attributes that it may have."""

    parameter: ast.arg
    name: str
    attributes: frozenset[str]


def find_unknown(
    module: Module, interface: Interface, handlers: Mapping[Function, tuple[ast.arg, str]]
) -> Iterator[Diagnostic]:
    """Yield the attributes that contexts in a module do not have.

    Args:
        module: The module.
        interface: The interface of its package.
        handlers: The methods that handle something, each with its parameter for the context and the class of that.
    """
    known = _ModuleContexts(module.syntax, interface)
    for function in ast.walk(module.syntax):
        if isinstance(function, Function):
            for given in known.find_contexts(function, handlers.get(function)):
                for node in known.find_missing(function, given):
                    public = sorted(each for each in given.attributes if not each.startswith("_"))
                    remedy = _DECLARED.get(node.attr) or did_you_mean(node.attr, public, "attributes")
                    at = module.find_span(node.end_lineno, node.end_col_offset, node.attr, ends=True)
                    yield Diagnostic("SW429", f"`{given.name}` has no attribute `{node.attr}`", at, remedy)


class _ModuleContexts:
    """The contexts of a module: the names of their classes, and the attributes that it sets on any object."""

    def __init__(self, module: ast.Module, interface: Interface) -> None:
        self._contexts = interface.contexts
        self._any = frozenset[str]().union(*interface.contexts.values())
        self._package = interface.package
        bound = Counter(imports.list_bindings(module))
        self._classes: dict[str, str] = {}
        self._modules: set[str] = set()
        for node in imports.find_imports(module):
            for alias in node.names:
                local = alias.asname or alias.name
                if bound[local] != 1:
                    continue
                if isinstance(node, ast.Import):
                    self._modules |= {local} if alias.name in (self._package, RUNTIME) else set()
                elif not node.level and self._has_contexts(node.module) and alias.name in self._contexts:
                    self._classes[local] = alias.name
        self._set = {
            node.attr
            for node in ast.walk(module)
            if isinstance(node, ast.Attribute)
            and not isinstance(node.ctx, ast.Load)
            and not (isinstance(node.value, ast.Name) and node.value.id == "self")
        }
        classes = {"self", "cls", *(node.name for node in module.body if isinstance(node, ast.ClassDef))}
        self._referred = {node.id for node in ast.walk(module) if isinstance(node, ast.Name)} | {
            node.attr
            for node in ast.walk(module)
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name) and node.value.id in classes
        }

    def _has_contexts(self, module: str | None) -> bool:
        return module in (RUNTIME, self._package, f"{self._package}.contexts")

    def find_contexts(self, function: Function, handled: tuple[ast.arg, str] | None) -> Iterator[ContextParameter]:
        """Yield the parameters of a function that are contexts."""
        arguments = function.args
        for parameter in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs):
            written = self._class(parameter.annotation)
            if handled is not None and parameter is handled[0]:
                name = handled[1]
                if (parameter.annotation is None or written in (name, naming.CONTEXT)) and name in self._contexts:
                    is_shared = function.name in self._referred or _is_narrowed(function, parameter.arg)
                    yield ContextParameter(parameter, name, self._any if is_shared else self._contexts[name])
            elif written is not None:  # a `Context` may be one of any tool
                attributes = self._any if written == naming.CONTEXT else self._contexts[written]
                yield ContextParameter(parameter, written, attributes)

    def _class(self, annotation: ast.expr | None) -> str | None:
        """Return the class of contexts that an annotation means; None if it is anything else."""
        if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
            try:
                annotation = ast.parse(annotation.value, mode="eval").body
            except SyntaxError:
                return None
        if isinstance(annotation, ast.Name):
            return self._classes.get(annotation.id)
        if isinstance(annotation, ast.Attribute) and isinstance(annotation.value, ast.Name):
            is_known = annotation.value.id in self._modules and annotation.attr in self._contexts
            return annotation.attr if is_known else None
        return None

    def find_missing(self, function: Function, given: ContextParameter) -> Iterator[ast.Attribute]:
        """Yield the attributes that a function uses of a parameter, and that this does not have."""
        names = _aliases(function, given.parameter.arg)
        tested = reading.find_tested(function, names)
        if tested is None:
            return
        for node in _uses(function, names):
            if not (node.attr in given.attributes | self._set | tested or reading.is_dunder(node.attr)):
                yield node


def _aliases(function: Function, name: str) -> frozenset[str]:
    """Return the names of a parameter in a function; none if something else may have them, too."""
    stored = Counter(scopes.find_stored(function))
    if stored[name]:
        return frozenset()
    names = {name}
    own = {each.arg for each in scopes.list_parameters(function.args)}
    for node in _scope(function):
        match node:
            case ast.Assign(targets=[ast.Name(id=target)], value=ast.Name(id=value)):
                pass
            case ast.AnnAssign(target=ast.Name(id=target), value=ast.Name(id=value)):
                pass
            case _:
                continue
        if value in names and stored[target] == 1 and target not in own:
            names.add(target)
    return frozenset(names)


def _scope(function: Function) -> Iterator[ast.stmt]:
    """Yield the statements of a function in their order, without those of functions and classes inside."""
    waiting: list[ast.AST] = [*reversed(function.body)]
    while waiting:
        node = waiting.pop()
        if isinstance(node, ast.stmt):
            yield node
        if not isinstance(node, Function | ast.ClassDef | ast.Lambda):
            waiting += reversed([*ast.iter_child_nodes(node)])


def _is_narrowed(function: Function, name: str) -> bool:
    """Return whether a function asks for the class of a parameter, as one does that serves several tools."""
    for node in ast.walk(function):
        match node:
            case ast.Call(func=ast.Name(id="isinstance" | "type"), args=[ast.Name(id=subject), *_]):
                if subject == name:
                    return True
            case ast.Match(subject=ast.Name(id=subject)):
                if subject == name:
                    return True
            case _:
                pass
    return False


def _uses(node: ast.AST, names: frozenset[str]) -> Iterator[ast.Attribute]:
    """Yield the attributes of these names that are read below a node."""
    for child in reading.find_running(node, _FAILURES):
        match child:
            case ast.Attribute(value=ast.Name(id=name), ctx=ast.Load()) if name in names:
                yield child
            case ast.FunctionDef(args=args) | ast.AsyncFunctionDef(args=args) | ast.Lambda(args=args):
                yield from _uses(child, names.difference(each.arg for each in scopes.list_parameters(args)))
            case _:
                yield from _uses(child, names)
