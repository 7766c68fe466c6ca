"""The imports of a handwritten module: the names that they bind, and the text with more of them."""

from __future__ import annotations

import ast
import io
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from typing import Final

STANDARD: Final = {"Mapping": "collections.abc", "Sequence": "collections.abc", "Any": "typing"}
"""Names in annotations that do not belong to a package, and their modules."""

_LONGEST: Final = 88
"""The maximum length of an import line, as in Black; longer lines are broken."""


def is_lazy(module: ast.Module) -> bool:
    """Return whether annotations are looked up only when they are asked for (PEP 563)."""
    return any(
        isinstance(node, ast.ImportFrom)
        and node.module == "__future__"
        and any(alias.name == "annotations" for alias in node.names)
        for node in module.body
    )


def list_aliases(node: ast.stmt, *, typing: bool) -> list[ast.alias]:
    """Return the names that a statement imports; with `typing` also those for type checkers alone."""
    if isinstance(node, ast.Import | ast.ImportFrom):
        return node.names
    if isinstance(node, ast.If) and (typing or not is_for_types(node)):
        return [alias for inner in node.body for alias in list_aliases(inner, typing=typing)]
    return []


def find_imports(module: ast.Module) -> Iterator[ast.Import | ast.ImportFrom]:
    """Yield the module-level imports, including conditional ones."""
    yield from (node for node in _statements(module) if isinstance(node, ast.Import | ast.ImportFrom))


def list_brought(node: ast.Import | ast.ImportFrom) -> Iterator[str]:
    """Yield the names that an import binds, including `*`."""
    yield from ((alias.asname or alias.name).split(".")[0] for alias in node.names)


def find_bound(module: ast.Module) -> frozenset[str]:
    """Return all names that a module may define, including `*` for star imports."""
    return frozenset(list_bindings(module))


def list_bindings(module: ast.Module) -> Iterator[str]:
    """Yield the same names, once or more for each binding."""
    for node in _statements(module):
        match node:
            case ast.ClassDef(name=name) | ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield name
            case ast.Import() | ast.ImportFrom():
                yield from list_brought(node)
            case _:
                yield from (
                    each.id for each in ast.walk(node) if isinstance(each, ast.Name) and isinstance(each.ctx, ast.Store)
                )


def _statements(module: ast.Module) -> Iterator[ast.stmt]:
    """Yield the statements of a module itself, those inside of others among them."""
    waiting: list[ast.stmt] = [*module.body]
    for node in waiting:  # grows while it is read
        yield node
        if not isinstance(node, ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef):
            waiting += [each for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)]
            waiting += [each for handler in getattr(node, "handlers", ()) for each in handler.body]


def with_imports(text: str, package: str, names: Iterable[str]) -> str:
    """Add imports to the text of a module: of names of a package, and of names of the standard library.

    An import from the same place gets more names; otherwise a line is added behind the last import, or at the top.

    Args:
        text: The module, which can be parsed.
        package: The package that has the names.
        names: Names in annotations that the module does not have.
    """
    sources: dict[str, list[str]] = defaultdict(list)
    for name in sorted({*names}):
        sources[STANDARD.get(name, package)].append(name)
    for source, wanted in sorted(sources.items()):
        text = _added(text, source, wanted)
    return text


def _added(text: str, source: str, names: Sequence[str]) -> str:
    module = ast.parse(text)
    lines = io.StringIO(text, newline="").readlines()  # unlike `splitlines`, at the line ends of Python alone
    newline = "\r\n" if text.count("\r\n") * 2 > text.count("\n") else "\n"
    node = next(_imports(module.body, source, typing=is_lazy(module)), None)
    if node is not None:
        return "".join(_extended(lines, node, names, newline))
    at = _place(module)
    added = _line(source, names, newline)
    if at and not lines[at - 1].endswith(("\n", "\r")):
        lines[at - 1] += newline
    return "".join([*lines[:at], added, *lines[at:]])


def _imports(body: Sequence[ast.stmt], source: str, *, typing: bool) -> Iterator[ast.ImportFrom]:
    """Yield the imports from a module, those for all before those for type checkers."""
    for node in body:
        if isinstance(node, ast.ImportFrom) and node.module == source and not node.level and node.names[0].name != "*":
            yield node
    for node in body:
        if typing and isinstance(node, ast.If) and is_for_types(node):
            yield from _imports(node.body, source, typing=False)


def is_for_types(node: ast.If) -> bool:
    """Return whether a condition holds for type checkers alone."""
    test = node.test
    return "TYPE_CHECKING" in (getattr(test, "id", ""), getattr(test, "attr", ""))


def _place(module: ast.Module) -> int:
    """Return after how many lines an import goes: behind the first imports, otherwise before the first statement."""
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


def _extended(lines: Sequence[str], node: ast.ImportFrom, names: Sequence[str], newline: str) -> list[str]:
    """Add names to an import: in their order if it has one, otherwise at its end."""
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
    # Start at the end, since each insertion moves the text after it.
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
    """Split a row at a column, which `ast` counts in bytes."""
    data = row.encode()
    return data[:column].decode(), data[column:].decode()
