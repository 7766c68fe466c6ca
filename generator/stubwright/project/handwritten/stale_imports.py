"""Names that handwritten modules take from their package or the runtime, and that these do not have.

Code that may not run, or may fail safely, is left alone: star imports, imports below an `if` or in a `try` that handles
their failure, and attributes that the module sets or tests with `hasattr`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from stubwright.codegen.pages.interface import RUNTIME
from stubwright.codegen.pages.renames import find_current_names
from stubwright.diagnostics import Diagnostic, Span
from stubwright.diagnostics.suggestions import find_alike, quote
from stubwright.project.handwritten import reading, scopes
from stubwright.project.handwritten.reading import Function, Module

if TYPE_CHECKING:
    from stubwright.codegen.pages.interface import Interface

_FAILURES: Final = frozenset({"ImportError", "ModuleNotFoundError"})
_OF_ATTRIBUTES: Final = frozenset({"AttributeError"})


def find_stale(module: Module, interface: Interface, renamed: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield the imports of a module that its package, or the runtime, does not have.

    Args:
        module: The module.
        interface: The interface of its package.
        renamed: Old names of methods to new ones, as far as known.
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
    yield from _attributes(module, interface, renamed)


def _name(
    module: Module, home: str, alias: ast.alias, interface: Interface, renamed: Mapping[str, str]
) -> Iterator[Diagnostic]:
    """Yield the fault of one name that a module imports from another one, its home."""
    if not _is_in(home, interface.package) and home != RUNTIME:
        return
    if reading.is_dunder(alias.name) or interface.has(home, alias.name):
        return
    known = interface.find_names(home)
    if known is not None:
        remedy = _instead("import", alias.name, known, renamed) or "remove the import and what uses it"
        yield Diagnostic("SW428", f"`{home}` has no `{alias.name}`", _span(module, alias), remedy)
    elif home not in interface.modules:
        yield _no_module(module, home, alias, interface)


def _attributes(module: Module, interface: Interface, renamed: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield the faults of attributes of modules that a module imports as a whole."""
    aliases = scopes.find_meanings(module.syntax)
    own = {local for local, home in aliases.items() if _is_in(home, interface.package) or _is_in(home, RUNTIME)}
    tested = reading.find_tested(module.syntax, own)
    if tested is None:
        return
    nodes = [*ast.walk(module.syntax)]
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    stored = {node.attr for node in nodes if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)}
    for node, home in _uses(module.syntax, aliases):
        name, known = node.attr, interface.find_names(home)
        if known is None or name in tested | stored or reading.is_dunder(name) or interface.has(home, name):
            continue
        if any(_is_in(each, f"{home}.{name}") for each in imported):
            continue  # its own import fails before
        at = module.find_span(node.end_lineno, node.end_col_offset, name, ends=True)
        remedy = _instead("write", name, known, renamed) or "remove what uses it"
        yield Diagnostic("SW428", f"`{home}` has no `{name}`", at, remedy)


def _uses(node: ast.AST, known: Mapping[str, str]) -> Iterator[tuple[ast.Attribute, str]]:
    """Yield the attributes of imported modules that are read below a node, each with the module."""
    for child in reading.find_running(node, _OF_ATTRIBUTES):
        if isinstance(child, ast.Attribute) and (home := scopes.find_meaning(child.value, known)) is not None:
            yield child, home
        inside = scopes.find_meanings_inside(child, known) if isinstance(child, Function | ast.Lambda) else known
        yield from _uses(child, inside)


def _instead(verb: str, name: str, known: Collection[str], renamed: Mapping[str, str]) -> str | None:
    """Return the remedy for a missing name: one to import or to write in its place; None if none is like it."""
    if called := find_current_names(name, renamed, known):
        return f"{verb} {quote(called)}, as it is called now"
    near = find_alike(name, sorted(known))
    return f"did you mean {quote(near)}?" if near else None


def _no_module(module: Module, home: str, alias: ast.alias, interface: Interface) -> Diagnostic:
    """Return the diagnostic for a module that the package does not have."""
    package, name = interface.package, alias.name
    if name == home:
        remedy = f"import what you need from `{package}` or `{RUNTIME}`"
    elif name in interface.exports:
        remedy = f"write `from {package} import {name}`"
    elif near := find_alike(name, sorted(interface.exports)):
        remedy = f"`{package}` has no `{name}`; did you mean its {quote(near)}?"
    else:
        remedy = "remove the import and what uses it"
    return Diagnostic("SW428", f"there is no module `{home}`", _span(module, alias), remedy)


def _span(module: Module, alias: ast.alias) -> Span:
    return module.find_span(alias.lineno, alias.col_offset, alias.name)


def _is_in(module: str, package: str) -> bool:
    return f"{module}.".startswith(f"{package}.")


def _imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports that fail if their names do not exist."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        yield node
    for child in _certain(node):
        yield from _imports(child)


def _certain(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the parts of a statement whose failure nothing handles, and that no condition guards."""
    if isinstance(node, ast.If):
        return
    if isinstance(node, ast.Try | ast.TryStar) and reading.handles(node, _FAILURES):
        yield from (*node.handlers, *node.finalbody)
        return
    yield from ast.iter_child_nodes(node)
