"""Resolves imported names in a module and its functions to qualified names.

Names with several possible bindings are not resolved.
"""

from __future__ import annotations

import ast
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping

from stubwright.project.handwritten import imports
from stubwright.project.handwritten.syntax_tree import Function


def find_meanings(module: ast.Module) -> dict[str, str]:
    """Return the qualified names of a module's imports, by local name, such as `time.sleep` for `sleep`."""
    return _find_stable_names(imports.find_imports(module), Counter(imports.list_bindings(module)))


def find_meanings_inside(function: Function | ast.Lambda, around: Mapping[str, str]) -> dict[str, str]:
    """Return the qualified names in a function, given the qualified names of the enclosing scope."""
    bound = Counter(find_stored(function))
    bound.update(each.arg for each in list_parameters(function.args))
    own = (node for node in ast.walk(function) if isinstance(node, ast.Import | ast.ImportFrom))
    return {name: meaning for name, meaning in around.items() if not bound[name]} | _find_stable_names(own, bound)


def _find_stable_names(nodes: Iterable[ast.Import | ast.ImportFrom], bound: Mapping[str, int]) -> dict[str, str]:
    """Return the names that are bound only by imports, always to the same qualified name."""
    meanings: dict[str, Counter[str]] = defaultdict(Counter)
    for node in nodes:
        for name, meaning in _list_imported(node):
            meanings[name][meaning] += 1
    return {
        name: meaning
        for name, counts in meanings.items()
        for meaning, count in counts.items()
        if count == bound[name]  # neither another import nor an assignment
    }


def _list_imported(node: ast.Import | ast.ImportFrom) -> Iterator[tuple[str, str]]:
    for alias in node.names:
        if isinstance(node, ast.ImportFrom):
            yield alias.asname or alias.name, f"{'.' * node.level}{node.module or ''}.{alias.name}"
        elif alias.asname is not None:
            yield alias.asname, alias.name
        else:
            top = alias.name.partition(".")[0]
            yield top, top


def find_meaning(expression: ast.expr, known: Mapping[str, str]) -> str | None:
    """Return the qualified name for a name or attribute; None if it is unknown."""
    match expression:
        case ast.Name(id=name):
            return known.get(name)
        case ast.Attribute(value=value, attr=attribute):
            above = find_meaning(value, known)
            return None if above is None else f"{above}.{attribute}"
        case _:
            return None


def find_stored(function: Function | ast.Lambda) -> Iterator[str]:
    """Yield the names that a function binds, once for each binding."""
    for node in ast.walk(function):
        match node:
            case ast.Name(id=name, ctx=ast.Store() | ast.Del()):
                yield name
            case ast.Global(names=names) | ast.Nonlocal(names=names):
                # Other functions might bind the name, too, so count it twice.
                yield from names * 2
            case ast.Import() | ast.ImportFrom():
                yield from imports.list_bound_names(node)
            case ast.ExceptHandler(name=str(name)) | ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield name
            case ast.MatchMapping(rest=str(name)):
                yield name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
                yield from [] if node is function else [name]
            case _:
                pass


def list_parameters(arguments: ast.arguments) -> list[ast.arg]:
    """Return all of a function's parameters."""
    every = [*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs]
    return every + [each for each in (arguments.vararg, arguments.kwarg) if each is not None]
