"""Reads the imports in a handwritten module and adds imports to it."""

from __future__ import annotations

import ast
import io
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

STANDARD: Final = {"Mapping": "collections.abc", "Sequence": "collections.abc", "Any": "typing"}
"""The modules for names in annotations that do not come from a package."""

_LONGEST: Final = 88
"""The maximum length of an import line, as for Black."""


def is_lazy(module: ast.Module) -> bool:
    """Return whether annotations are not evaluated at definition (PEP 563)."""
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(alias.name == "annotations" for alias in node.names)
        for node in module.body
    )


def list_aliases(node: ast.stmt, *, typing: bool) -> list[ast.alias]:
    """Return the names that a statement imports; with `typing`, include imports for type checkers."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return node.names
    if isinstance(node, ast.If) and (typing or not is_for_types(node)):
        return [alias for inner in node.body for alias in list_aliases(inner, typing=typing)]
    return []


def find_imports(module: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the module-level imports, including conditional ones."""
    yield from (node for node in _statements(module) if isinstance(node, ast.Import | ast.ImportFrom))


def list_bound_names(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Yield the names that an import binds, including `*`."""
    yield from ((alias.asname or alias.name).split(".")[0] for alias in node.names)


def find_bound(module: ast.Module) -> frozenset[str]:
    """Return all names that a module might define, including `*` for star imports."""
    return frozenset(list_bindings(module))


def list_bindings(module: ast.Module) -> Iterator[str]:
    """Yield the names that a module might define, once for each binding."""
    for node in _statements(module):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Import() | ast.ImportFrom():
                yield from list_bound_names(node)
            case _:
                yield from (
                    each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
                )


def _statements(module: ast.Module) -> Iterator[ast.stmt]:
    """Yield a module's statements, including nested ones, except statements in classes and functions."""
    waiting: list[ast.stmt] = [*module.body]
    for node in waiting:  # grows during the loop
        yield node
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)]
            waiting += [each for handler in getattr(node, "handlers", ()) for each in handler.body]


def with_imports(text: str, package: str, names: Iterable[str]) -> str:
    """Add imports from a package or the standard library to a module's text.

    Names are added to an existing import from the same module; otherwise a line is added after the last import, or at
    the top.

    Args:
        text: The module, which must be valid Python.
        package: The package that defines the names.
        names: Names in annotations that the module does not import.
    """
    sources: dict[str, list[str]] = defaultdict(list)
    for name in sorted({*names}):
        sources[STANDARD.get(name, package)].append(name)
    for source, wanted in sorted(sources.items()):
        text = _add_import(text, source, wanted)
    return text


def _add_import(text: str, source: str, names: Sequence[str]) -> str:
    module = ast.parse(text)
    lines = io.StringIO(text, newline="").readlines()  # `splitlines` would also split at form feeds
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    node = next(_imports(module.body, source, typing=is_lazy(module)), None)
    if node is not None:
        return "".join(_extend_import(lines, node, names, newline))
    at = _place(module)
    added = _line(source, names, newline)
    if at and not lines[at - 1].endswith(("\n", "\r")):
        lines[at - 1] += newline
    return "".join([*lines[:at], added, *lines[at:]])


def _imports(body: Sequence[ast.stmt], source: str, *, typing: bool) -> Iterator[ast.ImportFrom]:
    """Yield the imports from a module: first runtime imports, then imports for type checkers."""
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module == source and not node.level and node.names[0].name != "*":
            yield node
    for node in body:
        if typing and isinstance(node, ast.If) and is_for_types(node):
            yield from _imports(node.body, source, typing=False)


def is_for_types(node: ast.If) -> bool:
    """Return whether a condition is `TYPE_CHECKING`."""
    test = node.test
    return "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", ""))


def _place(module: ast.Module) -> int:
    """Return the line after which to add an import: after the first imports, or before the first statement."""
    after = 0
    for node in module.body:
        is_doc = isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and node is module.body[0]
        if not isinstance(node, ast.Import | ast.ImportFrom) and not is_doc:
            # `lineno` is the line of `def` or `class`, below the decorators.
            first = min((each.lineno for each in getattr(node, "decorator_list", ())), default=node.lineno)
            return after or first - 1
        after = node.end_lineno or node.lineno
    return after


def _line(source: str, names: Sequence[str], newline: str) -> str:
    line = f"from {source} import {', '.join(names)}"
    if len(line) <= _LONGEST:
        return line + newline
    return newline.join([f"from {source} import (", *(f"    {name}," for name in names), f"){newline}"])


def _extend_import(lines: Sequence[str], node: ast.ImportFrom, names: Sequence[str], newline: str) -> list[str]:
    """Add names to an import: in order if the import's names are sorted, otherwise at the end."""
    changed = [*lines]
    here = [alias.name for alias in node.names]
    is_ordered = here == sorted(here)
    end = node.end_lineno or node.lineno
    if node.lineno == end or "(" not in "".join(lines[node.lineno - 1 : end]):
        imported = [f"{alias.name} as {alias.asname}" if alias.asname else alias.name for alias in node.names]
        every = sorted([*imported, *names]) if is_ordered else [*imported, *names]
        head, _ = _split(lines[node.lineno - 1], node.col_offset)
        _, rest = _split(lines[end - 1], node.end_col_offset or 0)
        margin = head if not head.strip() else ""
        statement = _line(node.module or "", every, newline).removesuffix(newline)
        changed[node.lineno - 1 : end] = [head + statement.replace(newline, f"{newline}{margin}") + rest]
        return changed
    last = node.names[-1]
    # Start at the end, because each insertion moves the text after it.
    for name in sorted(names, reverse=True):
        follower = next((alias for alias in node.names if is_ordered and alias.name > name), None)
        row, column = (
            (last.end_lineno or last.lineno, last.end_col_offset or 0)
            if follower is None
            else (follower.lineno, follower.col_offset)
        )
        margin, _ = _split(lines[row - 1], (follower or last).col_offset)
        between = " " if margin.strip() else f"{newline}{margin}"
        head, tail = _split(changed[row - 1], column)
        changed[row - 1] = f"{head},{between}{name}{tail}" if follower is None else f"{head}{name},{between}{tail}"
    return changed


def _split(row: str, column: int) -> tuple[str, str]:
    # `ast` counts columns in bytes.
    data = row.encode()
    return data[:column].decode(), data[column:].decode()
