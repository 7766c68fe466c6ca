"""Imports of handwritten modules that fail, since their package or the runtime does not have the name or the module.

Takes a module's syntax and what its package offers; gives diagnostics. What may not run, or may fail without harm, is
left alone: star imports, and imports below an `if` or in a `try` that handles their failure.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Final

from stubwright.codegen.pages.interface import RUNTIME
from stubwright.diagnostics import Diagnostic, Span
from stubwright.diagnostics.suggestions import alike, quoted
from stubwright.project.handwritten import reading
from stubwright.project.handwritten.reading import Module

if TYPE_CHECKING:
    from stubwright.codegen.pages.interface import Interface

_FAILURES: Final = frozenset({"ImportError", "ModuleNotFoundError"})


def stale(module: Module, interface: Interface, renamed: Mapping[str, str]) -> Iterator[Diagnostic]:
    """What a module imports and does not get.

    Args:
        module: The module.
        interface: What its package offers.
        renamed: Starts of the names of classes to what they start with now.
    """
    for node in _imports(module.syntax):
        if isinstance(node, ast.Import):
            for alias in node.names:
                if _is_in(alias.name, interface.package) and alias.name not in interface.modules:
                    yield _no_module(module, alias.name, alias, interface)
        elif node.module is not None and not node.level:
            for alias in node.names:
                if alias.name != "*":
                    yield from _name(module, node.module, alias, interface, renamed)


def _name(
    module: Module, home: str, alias: ast.alias, interface: Interface, renamed: Mapping[str, str]
) -> Iterator[Diagnostic]:
    """What is wrong with one name that a module imports from another one, its home."""
    if not _is_in(home, interface.package) and home != RUNTIME:
        return
    if reading.is_dunder(alias.name) or interface.has(home, alias.name):
        return
    known = interface.names(home)
    if known is None:
        if home not in interface.modules:
            yield _no_module(module, home, alias, interface)
        return
    now = [f"{new}{alias.name.removeprefix(old)}" for old, new in renamed.items() if alias.name.startswith(old)]
    if called := [name for name in now if name in known]:
        remedy = f"import {quoted(called)}, as it is called now"
    elif near := alike(alias.name, sorted(known)):
        remedy = f"did you mean {quoted(near)}?"
    else:
        remedy = "remove the import and what uses it"
    yield Diagnostic("SW428", f"`{home}` has no `{alias.name}`", _span(module, alias), remedy)


def _no_module(module: Module, home: str, alias: ast.alias, interface: Interface) -> Diagnostic:
    """What to say of a module that the package does not have."""
    package, name = interface.package, alias.name
    if name == home:
        remedy = f"import what you need from `{package}` or `{RUNTIME}`"
    elif name in interface.exports:
        remedy = f"write `from {package} import {name}`"
    elif near := alike(name, sorted(interface.exports)):
        remedy = f"`{package}` has no `{name}`; did you mean its {quoted(near)}?"
    else:
        remedy = "remove the import and what uses it"
    return Diagnostic("SW428", f"there is no module `{home}`", _span(module, alias), remedy)


def _span(module: Module, alias: ast.alias) -> Span:
    return module.span(alias.lineno, alias.col_offset, alias.name)


def _is_in(module: str, package: str) -> bool:
    return module.partition(".")[0] == package


def _imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """The imports that fail where what they ask for is not there."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node
    for child in _certain(node):
        yield from _imports(child)


def _certain(node: ast.AST) -> Iterator[ast.AST]:
    """The parts of a statement whose failure nothing handles, and that no condition guards."""
    if isinstance(node, ast.If):
        return
    if isinstance(node, ast.Try | ast.TryStar) and reading.handles(node, _FAILURES):
        yield from (*node.handlers, *node.finalbody)
        return
    yield from ast.iter_child_nodes(node)
