"""Names that handwritten modules take from their package or the runtime, and that these do not have.

Takes a module's syntax and what its package offers; gives diagnostics, for imports and for attributes of what was
imported as a whole (`import x as api`, then `api.Gone`). What may not run, or may fail without harm, is left alone:
star imports, imports below an `if` or in a `try` that handles their failure, and attributes that the module sets or
tests with `hasattr`.
"""

from __future__ import annotations

import ast
from collections.abc import Collection, Iterator, Mapping
from typing import TYPE_CHECKING, Final

from stubwright.codegen.pages.interface import RUNTIME
from stubwright.codegen.pages.renames import current_names
from stubwright.diagnostics import Diagnostic, Span
from stubwright.diagnostics.suggestions import alike, quoted
from stubwright.project.handwritten import reading, scopes
from stubwright.project.handwritten.reading import Function, Module

if TYPE_CHECKING:
    from stubwright.codegen.pages.interface import Interface

_FAILURES: Final = frozenset({"ImportError", "ModuleNotFoundError"})
_OF_ATTRIBUTES: Final = frozenset({"AttributeError"})


def stale(module: Module, interface: Interface, renamed: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield what a module imports from its package, or from the runtime, and does not get.

    Args:
        module: The module.
        interface: What its package offers.
        renamed: Old names of methods to new ones, as far as they are known.
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
    """Yield what is wrong with one name that a module imports from another one, its home."""
    if not _is_in(home, interface.package) and home != RUNTIME:
        return
    if reading.is_dunder(alias.name) or interface.has(home, alias.name):
        return
    known = interface.names(home)
    if known is not None:
        remedy = _instead("import", alias.name, known, renamed) or "remove the import and what uses it"
        yield Diagnostic("SW428", f"`{home}` has no `{alias.name}`", _span(module, alias), remedy)
    elif home not in interface.modules:
        yield _no_module(module, home, alias, interface)


def _attributes(module: Module, interface: Interface, renamed: Mapping[str, str]) -> Iterator[Diagnostic]:
    """Yield what is wrong with attributes of what a module imports as a whole."""
    aliases = scopes.meanings(module.syntax)
    own = {local for local, home in aliases.items() if _is_in(home, interface.package) or _is_in(home, RUNTIME)}
    tested = reading.tested(module.syntax, own)
    if tested is None:
        return
    nodes = [*ast.walk(module.syntax)]
    imported = {alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names}
    stored = {node.attr for node in nodes if isinstance(node, ast.Attribute) and not isinstance(node.ctx, ast.Load)}
    for node, home in _uses(module.syntax, aliases):
        name, known = node.attr, interface.names(home)
        if known is None or name in tested | stored or reading.is_dunder(name) or interface.has(home, name):
            continue
        if any(_is_in(each, f"{home}.{name}") for each in imported):
            continue  # its own import fails before
        at = module.span(node.end_lineno, node.end_col_offset, name, ends=True)
        remedy = _instead("write", name, known, renamed) or "remove what uses it"
        yield Diagnostic("SW428", f"`{home}` has no `{name}`", at, remedy)


def _uses(node: ast.AST, known: Mapping[str, str]) -> Iterator[tuple[ast.Attribute, str]]:
    """Yield the attributes that are read below a node of what was imported, each with what that is."""
    for child in reading.running(node, _OF_ATTRIBUTES):
        if isinstance(child, ast.Attribute) and (home := scopes.dotted(child.value, known)) is not None:
            yield child, home
        inside = scopes.meanings_inside(child, known) if isinstance(child, Function | ast.Lambda) else known
        yield from _uses(child, inside)


def _instead(verb: str, name: str, known: Collection[str], renamed: Mapping[str, str]) -> str | None:
    """Return what to import or to write in place of a name that is not there."""
    if called := current_names(name, renamed, known):
        return f"{verb} {quoted(called)}, as it is called now"
    near = alike(name, sorted(known))
    return f"did you mean {quoted(near)}?" if near else None


def _no_module(module: Module, home: str, alias: ast.alias, interface: Interface) -> Diagnostic:
    """Return the diagnostic for a module that the package does not have."""
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
    return f"{module}.".startswith(f"{package}.")


def _imports(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the imports that fail where what they ask for is not there."""
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
