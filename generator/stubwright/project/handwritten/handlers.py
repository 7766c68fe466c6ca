"""Finds missing, obsolete and mismatched methods in the handwritten class.

Parses the module without importing it. If a base class comes from another module, its methods are unknown, so no method
is reported as missing.
"""

from __future__ import annotations

import ast
import io
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Final

from stubwright import naming
from stubwright.codegen.source.literals import format_literal
from stubwright.codegen.surface import HandlerMethod
from stubwright.diagnostics import Diagnostic, Place, Span
from stubwright.diagnostics.suggestions import find_nearest
from stubwright.project.handwritten import (
    blocking_calls,
    imports,
    qualified_types,
    scopes,
)
from stubwright.project.handwritten.syntax_tree import Function, Module
from stubwright.pycode import Code, fill, join

_ANY = frozenset({"Any", "object"})


@dataclass(frozen=True, slots=True)
class HandwrittenClass:
    """A handwritten class in a module.

    Attributes:
        path: The file, as diagnostics show it.
        text: The module's text.
        name: The class name.
        handlers: The interface that the class implements.
        package: The package that stubs import names from.
        at: The location of the class name in the manifest.
    """

    path: str
    text: str
    name: str
    handlers: str
    package: str = ""
    at: Place | None = None


@dataclass(frozen=True, slots=True)
class Findings:
    """The problems with the class, and its missing methods; `is_found` is true if the class was found."""

    diagnostics: tuple[Diagnostic, ...] = ()
    missing: tuple[HandlerMethod, ...] = ()
    is_found: bool = True


def compare(
    written: HandwrittenClass,
    needed: Sequence[HandlerMethod],
    before: Mapping[str, str | None] | None = None,
    renamed: Mapping[str, str] | None = None,
) -> Findings:
    """Compare a class with the methods that the manifest requires.

    Args:
        written: The handwritten class.
        needed: The required methods.
        before: The methods required when the package was last generated, each with its result class.
        renamed: The new names of renamed methods, by old name.
    """
    module = _module(written)
    if isinstance(module, Diagnostic):
        return Findings((module,), is_found=False)
    handlers_class = _class(written, module)
    read = Module(written.path, written.text, module)
    if handlers_class is None:
        absent = _absent(written, module)
        return Findings((absent,) if absent is not None else (), is_found=False)
    methods, is_whole = handlers_class.methods, handlers_class.is_whole
    asked = {method.name for method in needed}
    there = methods.keys() | handlers_class.assigned
    missing = tuple(method for method in needed if is_whole and not method.is_optional and method.name not in there)
    called = {new: old for old, new in (renamed or {}).items() if old in methods and old not in asked}
    diagnostics = [
        Diagnostic(
            "SW427",
            f"`{called[method.name]}` was renamed to `{method.name}`",
            handlers_class.find_span(methods[called[method.name]]),
            f"rename it: `{format_signature(method)}`",
        )
        for method in missing
        if method.name in called
    ]
    instead = [called[method.name] for method in missing if method.name in called]
    missing = tuple(method for method in missing if method.name not in called)
    if missing:
        diagnostics.append(_report_missing(written.name, missing, handlers_class.find_span(handlers_class.node)))
    earlier = before or {}
    results = {naming.name_output_class(method.names) for method in needed if method.role == "tool"} | {
        *earlier.values()
    }
    for method in needed:
        if method.name in methods:
            diagnostics += _differences(method, methods[method.name], handlers_class, results)
    diagnostics += [
        Diagnostic(
            "SW421", f"`{name}` is no longer needed", handlers_class.find_span(methods[name]), "delete or rename it"
        )
        for name in sorted((earlier.keys() | _find_unknown_methods(needed, handlers_class)) - asked - {*instead})
        if name in methods
    ]
    diagnostics += blocking_calls.find_blocking(read, methods.values(), asked)
    return Findings(tuple(diagnostics), missing)


def _report_missing(name: str, missing: Sequence[HandlerMethod], at: Span) -> Diagnostic:
    """Report all missing methods together, because users write them together."""
    if len(missing) == 1:
        fix = f"write `{format_signature(missing[0])}`"
        return Diagnostic("SW420", f"`{name}` has no method `{missing[0].name}`", at, fix)
    *first, last = [f"`{method.name}`" for method in missing[:_LISTED]]
    more = len(missing) - _LISTED
    listed = ", ".join([*first, last]) + f" and {more} more" if more > 0 else f"{', '.join(first)} and {last}"
    fix = "write them, or add stubs for all with `stubwright generate --stubs`"
    return Diagnostic("SW420", f"`{name}` lacks the methods {listed}", at, fix)


_LISTED: Final = 10
"""The maximum number of missing methods to list."""


def _decorators(function: Function) -> set[str | None]:
    return {_parse_name(decorator) for decorator in function.decorator_list}


def _positional(function: Function) -> list[ast.arg]:
    parameters = [*function.args.posonlyargs, *function.args.args]
    return parameters if "staticmethod" in _decorators(function) else parameters[1:]


def format_signature(method: HandlerMethod) -> Code:
    """Return a method's `def` line."""
    return fill("async def {}({}) -> {}:", method.name, method.signature, method.result.text)


def with_stubs(written: HandwrittenClass, missing: Sequence[HandlerMethod]) -> str:
    """Add a stub for each missing method at the end of the class, without changing the rest of the module.

    Missing names are imported. If their module is unknown, annotations become strings, so that the module can still be
    imported.
    """
    if missing and written.package:
        names = list_names_to_import(written, missing)
        written = replace(written, text=imports.with_imports(written.text, written.package, names))
    module = _module(written)
    handlers_class = None if isinstance(module, Diagnostic) else _class(written, module)
    if handlers_class is None or not missing:
        return written.text
    missing = _qualify_types(missing, written, handlers_class)
    lines = io.StringIO(written.text, newline="").readlines()  # `splitlines` would also split at form feeds
    newline = "\r\n" if written.text.count("\r\n") * 2 > written.text.count("\n") else "\n"
    first = handlers_class.node.body[0]
    end = handlers_class.node.end_lineno or len(lines)
    row = lines[first.lineno - 1].encode()  # `ast` counts columns in UTF-8 bytes
    head, body = row[: first.col_offset].decode().rstrip(), row[first.col_offset :].decode()
    if head:  # break the line of `class X: pass`
        lines[first.lineno - 1] = f"{head}{newline}    {body}"
        margin = "    "
    else:
        margin = lines[first.lineno - 1][: first.col_offset]
    indent = "\t" if margin.startswith("\t") else "    "
    stubs = "".join(
        f"{newline}{margin}{stub}{newline}{margin}{indent}raise NotImplementedError{newline}"
        for stub in (_format_stub(method, handlers_class) for method in missing)
    )
    last = lines[end - 1]
    head = "".join(lines[:end]) + ("" if last.endswith(("\n", "\r")) else newline)
    return head + stubs + "".join(lines[end:])


def list_names_to_import(written: HandwrittenClass, missing: Sequence[HandlerMethod]) -> tuple[str, ...]:
    """Return the sorted names that the stubs use and the module lacks."""
    module = _module(written)
    handlers_class = None if isinstance(module, Diagnostic) else _class(written, module)
    known = handlers_class.names if handlers_class is not None else frozenset()
    missing = _qualify_types(missing, written, handlers_class) if handlers_class is not None else missing
    return tuple(sorted({name for method in missing for name in _annotated(method)} - known))


def _qualify_types(
    missing: Sequence[HandlerMethod], written: HandwrittenClass, handlers_class: _Class
) -> Sequence[HandlerMethod]:
    """Return the methods with types such as `api.GetInput` if the module imports its package only as `api`."""
    alias = handlers_class.packages.get(written.package)
    if alias is None:
        return missing
    return [
        replace(
            method,
            parameters=tuple(
                replace(each, given=qualified_types.qualify(each.given, alias, handlers_class.names))
                for each in method.parameters
            ),
            result=qualified_types.qualify(method.result, alias, handlers_class.names),
        )
        for method in missing
    ]


@dataclass(frozen=True, slots=True)
class _Class:
    """A parsed class.

    Attributes:
        node: The syntax tree of the class.
        methods: The methods of the class, including methods inherited within the module.
        assigned: The names assigned in the body of the class, which could be methods.
        is_whole: True if all base classes are known.
        names: The names in the module of the class.
        packages: The local names of packages that are imported only as modules.
        lazy: True if annotations are not evaluated.
        path: The file, as diagnostics show it.
    """

    node: ast.ClassDef
    methods: Mapping[str, Function]
    assigned: frozenset[str]
    is_whole: bool
    names: frozenset[str]
    packages: Mapping[str, str]
    lazy: bool
    path: str

    def find_span(self, node: ast.ClassDef | Function) -> Span:
        keyword = {ast.ClassDef: "class ", ast.FunctionDef: "def ", ast.AsyncFunctionDef: "async def "}[type(node)]
        column = node.col_offset + len(keyword) + 1
        return Span(self.path, node.lineno, column, node.lineno, column + len(node.name))


def _module(written: HandwrittenClass) -> ast.Module | Diagnostic:
    try:
        return ast.parse(written.text)
    except SyntaxError as error:
        line, column = error.lineno or 1, max(error.offset or 1, 1)
        end = error.end_offset if error.end_lineno == line and error.end_offset else column + 1
        at = Span(written.path, line, column, line, max(end, column + 1))
        return Diagnostic(
            "SW425", f"this is not valid Python: {error.msg}", at, "fix it, so that its methods can be checked"
        )
    except ValueError as error:  # some releases of Python raise it for a null byte
        return Diagnostic("SW425", f"this is not valid Python: {error}", Span(written.path, 1, 1, 1, 2))


def _class(written: HandwrittenClass, module: ast.Module) -> _Class | None:
    """Return the class with members inherited within the module, or None if the module does not contain the class."""
    classes = {node.name: node for node in module.body if isinstance(node, ast.ClassDef)}
    node = classes.get(written.name)
    if node is None:
        return None
    methods: dict[str, Function] = {}
    assigned: set[str] = set()
    is_whole = _collect(node, classes, written.handlers, methods, assigned, set())
    lazy = imports.is_lazy(module)
    names = {
        alias.asname or alias.name
        for statement in module.body
        for alias in imports.list_aliases(statement, typing=lazy)
    }
    parts = {
        each.module for each in imports.find_imports(module) if isinstance(each, ast.ImportFrom) and not each.level
    }
    meanings = scopes.find_meanings(module).items()
    packages = {package: name for name, package in meanings if name in names and package not in parts}
    return _Class(
        node, methods, frozenset(assigned), is_whole, frozenset(names | classes.keys()), packages, lazy, written.path
    )


def _absent(written: HandwrittenClass, module: ast.Module) -> Diagnostic | None:
    """Return the diagnostic for a missing class, or None if the module might define the name in another way."""
    names = imports.find_bound(module)
    if written.name in names or "*" in names or "__getattr__" in names:
        return None
    classes = [node.name for node in module.body if isinstance(node, ast.ClassDef)]
    near = find_nearest(written.name, classes)
    fix = f"did you mean `{near}`?" if near else f"add `class {written.name}({written.handlers}): …` to the module"
    return Diagnostic("SW426", f"`{written.path}` has no `{written.name}`", written.at, fix)


def _find_unknown_methods(needed: Sequence[HandlerMethod], handlers_class: _Class) -> set[str]:
    """Return the methods whose signature fits an unknown tool."""
    inputs = {choice for method in needed for parameter in method.parameters for choice in parameter.type.choices}
    return {
        name
        for name, written in handlers_class.methods.items()
        if not name.startswith("_") and _accepts_input(written, inputs)
    }


def _accepts_input(written: Function, known: Collection[str]) -> bool:
    """Return whether a method takes an unknown tool's arguments and a context."""
    arguments = [*written.args.posonlyargs, *written.args.args][1:]
    annotation = _parse_name(arguments[0].annotation) if len(arguments) == 2 else None
    return annotation is not None and annotation.endswith("Input") and annotation not in known


def _collect(
    node: ast.ClassDef,
    classes: Mapping[str, ast.ClassDef],
    handlers: str,
    methods: dict[str, Function],
    assigned: set[str],
    seen: set[str],
) -> bool:
    """Collect the members of a class and its bases. Return whether all bases are known."""
    seen.add(node.name)
    for member in node.body:
        if isinstance(member, Function):
            methods.setdefault(member.name, member)
        elif isinstance(member, ast.Assign):
            assigned |= {target.id for target in member.targets if isinstance(target, ast.Name)}
        elif isinstance(member, ast.AnnAssign) and isinstance(member.target, ast.Name) and member.value is not None:
            assigned.add(member.target.id)
    is_whole = not node.decorator_list  # a decorator could add methods
    for base in node.bases:
        name = base.id if isinstance(base, ast.Name) else base.attr if isinstance(base, ast.Attribute) else ""
        if name in classes and name not in seen:
            is_whole &= _collect(classes[name], classes, handlers, methods, assigned, seen)
        elif name not in (handlers, "object", "Protocol"):
            is_whole = False
    return is_whole


def _differences(
    method: HandlerMethod, written: Function, handlers_class: _Class, results: Collection[str | None]
) -> Iterator[Diagnostic]:
    """Report methods with the wrong parameters or return type.

    A return type is checked only if it is one of `results`, the tools' result classes.
    """
    arguments = written.args
    positional = _positional(written)
    needed = len(positional) - len(arguments.defaults)
    required = [
        parameter
        for parameter, default in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if default is None
    ]
    expected = method.parameters
    if required or needed > len(expected) or (len(positional) < len(expected) and arguments.vararg is None):
        yield _difference(f"must accept the arguments ({_join_parameters(method)})", method, written, handlers_class)
        return
    for argument, wanted in zip(positional, expected, strict=False):
        annotation = _parse_name(argument.annotation)
        fits = {*_ANY, *wanted.type.choices, *([naming.CONTEXT] if wanted is method.context else [])}
        if annotation is not None and annotation not in fits:
            problem = f"receives `{wanted.type.text}`, not `{annotation}`, as `{argument.arg}`"
            yield _difference(problem, method, written, handlers_class)
            return
    annotation = _parse_name(written.returns)
    if annotation is not None and annotation in results and annotation not in method.result.choices:
        yield _difference(f"must return `{method.result.text}`, not `{annotation}`", method, written, handlers_class)


def _difference(words: str, method: HandlerMethod, written: Function, handlers_class: _Class) -> Diagnostic:
    return Diagnostic(
        "SW422", f"`{method.name}` {words}", handlers_class.find_span(written), f"write `{format_signature(method)}`"
    )


def _join_parameters(method: HandlerMethod) -> str:
    return ", ".join(parameter.name for parameter in method.parameters)


def _parse_name(annotation: ast.expr | None) -> str | None:
    """Return the unqualified name in an annotation, or None for other expressions."""
    if isinstance(annotation, ast.Constant) and isinstance(annotation.value, str):
        try:
            annotation = ast.parse(annotation.value, mode="eval").body
        except SyntaxError:
            return None
    if isinstance(annotation, ast.Attribute):
        return annotation.attr
    return annotation.id if isinstance(annotation, ast.Name) else None


def _annotated(method: HandlerMethod) -> frozenset[str]:
    return method.result.names.union(*(parameter.type.names for parameter in method.parameters))


def _format_stub(method: HandlerMethod, handlers_class: _Class) -> Code:
    """Return a stub's `def` line, with annotations as strings if evaluating them would fail."""
    if handlers_class.lazy or _annotated(method) <= handlers_class.names:
        return format_signature(method)
    quoted = [fill("{}: {}", parameter.name, format_literal(parameter.type.text)) for parameter in method.parameters]
    parameters = join(", ", [fill("self"), *quoted])
    return fill("async def {}({}) -> {}:", method.name, parameters, format_literal(method.result.text))
